"""Loads a graph that draws at random, as one whose mean over several passes predicts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from service.core.passes.covariance_norm import covariance_norm
from service.errors import InvalidConfig
from service.graph.noise_site import NoiseSite
from service.graph.output import OutputChoice
from service.graph.plan import OutputPlan, plan_output
from service.graph.random_operators import expose_random
from service.runner.child.averaged_model import AveragedModel, StochasticPasses
from service.runner.child.finite_rows import on_finite_rows
from service.runner.child.load_options import LoadOptions
from service.runner.child.loaded_model import LoadedModel
from service.runner.child.noise_feeds import NoiseFeeds, quiet_feeds
from service.runner.child.onnx_file import OnnxFile, Probed
from service.runner.child.same_noise import check_same_noise
from service.runner.child.trial_rows import (
    TIMED_PASSES,
    check_spread,
    fitted_trial,
    milliseconds_a_row,
    timed_rows,
)
from service.runner.description import PLAIN, LoadedOnnxModel
from service.runner.frames import Array
from service.runner.pass_plan import ENSEMBLE, PassPlan


def load_stochastic(
    file: OnnxFile, options: LoadOptions, trial: Mapping[str, Array]
) -> LoadedModel:
    """Load a graph with random operators.

    Raises
    ------
    InvalidConfig
        If it has none, or another measure is asked for that needs an answer without noise.
    """
    plan = options.plan(ENSEMBLE)
    others = [other.measure for other in options.passes if other is not plan]
    if plan is None or others or options.scalar_outputs:
        raise InvalidConfig.at(
            "config.measures",
            f"a graph that draws at random gives {ENSEMBLE} and the measures of its mean; "
            f"{', '.join(others) or 'an output of the model'} needs one that does not",
        )
    if options.resolved is not None:
        choice = options.resolved.choice
        sites = expose_random(file.model, _plan(file, options, choice.name).tensor)
        return _load(file, options, choice, sites, plan)
    return _resolve(file, options, plan, trial)


def _resolve(
    file: OnnxFile, options: LoadOptions, plan: PassPlan, trial: Mapping[str, Array]
) -> LoadedModel:
    output = _plan(file, options, options.output_name)
    sites = expose_random(file.model, output.tensor)
    inputs = fitted_trial(trial, file.inputs, options.location)
    probed = file.probe(output, sites, inputs)
    file.renew()
    sites = expose_random(file.model, output.tensor)
    loaded = _load(file, options, probed.choice, sites, plan)
    costs = _try(loaded, probed, sites, inputs, options.location)
    return replace(loaded, found=replace(loaded.found, costs=costs))


def _try(
    loaded: LoadedModel,
    probed: Probed,
    sites: Sequence[NoiseSite],
    inputs: Mapping[str, Array],
    place: str,
) -> dict[str, float]:
    """Try the passes on a few rows, and return what a row costs in milliseconds."""
    model = loaded.answering
    if not isinstance(model, AveragedModel) or not isinstance(model.voices, StochasticPasses):
        raise TypeError("expected a mean of passes")
    passes, fixed = model.voices.passes, loaded.description.fixed_batch
    logs = model.passes(timed_rows(inputs, fixed, [passes], numbers=loaded.numbers), place)
    variance = on_finite_rows(covariance_norm, logs)
    check_spread(ENSEMBLE, variance, passes, "its random operators change nothing")
    rows = timed_rows(inputs, fixed, [TIMED_PASSES], numbers=loaded.numbers)
    n_rows = len(next(iter(rows.values())))
    n_timed = min(passes, TIMED_PASSES)
    few = replace(model, voices=replace(model.voices, passes=n_timed))
    check_same_noise(lambda fed: few.passes(fed, place), rows, fixed)
    names, quiet = probed.session.output_names, quiet_feeds(sites)
    plain = milliseconds_a_row(
        lambda: probed.session.run(names, {**rows, **quiet}, place=place), n_rows
    )
    cost = milliseconds_a_row(lambda: few.passes(rows, place), n_rows, repeat=2)
    return {PLAIN: plain, ENSEMBLE: cost * passes / n_timed}


def _plan(file: OnnxFile, options: LoadOptions, name: str | None) -> OutputPlan:
    return plan_output(file.model, name=name, kind=options.output_kind)


def _load(
    file: OnnxFile,
    options: LoadOptions,
    choice: OutputChoice,
    sites: Sequence[NoiseSite],
    plan: PassPlan,
) -> LoadedModel:
    file.refuse_too_many(choice.n_classes)
    session = file.scores(choice, sites)
    fixed = file.description.fixed_batch
    noise = NoiseFeeds(session, sites, seed=plan.seed, fixed_batch=fixed)
    top_k = options.events(choice.n_classes)
    passes = StochasticPasses(session, choice.kind, noise, plan.passes)
    found = LoadedOnnxModel(
        description=file.description,
        output=choice,
        top_k=top_k,
        provider=session.provider,
        versions=options.versions,
        passes=options.passes,
        averaged=True,
        preprocessing=options.preprocessing,
    )
    model = AveragedModel(passes, top_k, plan)
    return LoadedModel(model, found, numbers=plan.passes * choice.n_classes)
