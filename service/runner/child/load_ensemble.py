"""Loads several ONNX models as one whose mean probability predicts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from service.core.passes.covariance_norm import covariance_norm
from service.errors import InvalidConfig, InvalidOnnxModel
from service.graph.output import OutputChoice
from service.graph.plan import plan_output
from service.graph.quote import quote_all
from service.graph.random_operators import refuse_random
from service.model_rules import ModelRule
from service.runner.child.averaged_model import AveragedModel, Members
from service.runner.child.finite_rows import on_finite_rows
from service.runner.child.load_options import LoadOptions
from service.runner.child.loaded_model import LoadedModel
from service.runner.child.onnx_file import OnnxFile, Probed
from service.runner.child.onnx_session import OnnxSession
from service.runner.child.trial_rows import (
    check_spread,
    fitted_trial,
    milliseconds_a_row,
    timed_rows,
)
from service.runner.child.verify_head import verify_scores
from service.runner.description import PLAIN, LoadedOnnxModel
from service.runner.frames import Array
from service.runner.pass_plan import ENSEMBLE, PassPlan


def load_ensemble(
    files: Sequence[OnnxFile], options: LoadOptions, trial: Mapping[str, Array]
) -> LoadedModel:
    """Load the members of an ensemble.

    Raises
    ------
    InvalidOnnxModel
        If they do not take the same inputs or do not tell the same classes apart.
    InvalidConfig
        If a measure is asked for that needs one model.
    """
    _check_measures(options)
    _check_inputs(files)
    if options.resolved is not None:
        choices = (options.resolved.choice, *options.resolved.members)
        sessions = [file.scores(choice) for file, choice in zip(files, choices, strict=True)]
        return _load(files, options, choices, sessions)
    inputs = fitted_trial(trial, files[0].inputs, options.location)
    probes = [_probe(file, options, inputs, position) for position, file in enumerate(files)]
    choices = tuple(probed.choice for probed in probes)
    _check_classes(files, choices)
    sessions = [file.scores(choice) for file, choice in zip(files, choices, strict=True)]
    loaded = _load(files, options, choices, sessions)
    costs = _try(loaded, sessions[0], inputs, probes, options.location)
    return replace(loaded, found=replace(loaded.found, costs=costs))


def _check_measures(options: LoadOptions) -> None:
    others = [plan.measure for plan in options.passes if plan.measure != ENSEMBLE]
    if others or options.scalar_outputs:
        what = ", ".join(others) or "an output of the model as a measure"
        raise InvalidConfig.at("config.measures", f"{what} needs one model, not an ensemble")


def _check_inputs(files: Sequence[OnnxFile]) -> None:
    first = [str(spec) for spec in files[0].description.inputs]
    for position, file in enumerate(files[1:], start=1):
        own = [str(spec) for spec in file.description.inputs]
        batches = [found.description.fixed_batch for found in (files[0], file)]
        if own != first or batches[0] != batches[1]:
            raise InvalidOnnxModel.because(
                ModelRule.MEMBERS_DIFFER,
                f"the members of an ensemble take the same inputs; this one takes "
                f"{'; '.join(own)} where the first takes {'; '.join(first)}",
                location=f"model[{position}]",
            )


def _probe(
    file: OnnxFile, options: LoadOptions, inputs: Mapping[str, Array], position: int
) -> Probed:
    """Choose a member's output; what is wrong with it is said with its number."""
    try:
        plan = plan_output(file.model, name=options.output_name, kind=options.output_kind)
        refuse_random(file.model, plan.tensor)
        return file.probe(plan, (), inputs)
    except InvalidOnnxModel as error:
        broken = error.violations[0]
        raise InvalidOnnxModel.at(f"model[{position}]", broken.message, rule=broken.rule) from error


def _check_classes(files: Sequence[OnnxFile], choices: Sequence[OutputChoice]) -> None:
    first, labels = choices[0], files[0].description.class_labels or ()
    for position, (file, choice) in enumerate(zip(files, choices, strict=True)):
        own = file.description.class_labels or ()
        if choice.n_classes != first.n_classes:
            found = f"{choice.n_classes} where the first has {first.n_classes}"
        elif own != labels and {*map(type, own)} == {*map(type, labels)}:
            # Numbers may stand for another member's names, which others of their kind do not.
            named = [quote_all([str(label) for label in names]) for names in (own, labels)]
            found = f"{named[0]} where the first has {named[1]}"
        else:
            continue
        raise InvalidOnnxModel.because(
            ModelRule.MEMBERS_DIFFER,
            "the members of an ensemble tell the same classes apart, in the same order; this one "
            f"has {found}",
            location=f"model[{position}]",
        )


def _load(
    files: Sequence[OnnxFile],
    options: LoadOptions,
    choices: Sequence[OutputChoice],
    sessions: Sequence[OnnxSession],
) -> LoadedModel:
    first = choices[0]
    files[0].refuse_too_many(first.n_classes)
    top_k = options.events(first.n_classes)
    asked = options.plan(ENSEMBLE)
    plan: PassPlan | None = None if asked is None else replace(asked, passes=len(files))
    found = LoadedOnnxModel(
        description=files[0].description,
        output=first,
        top_k=top_k,
        provider=sessions[0].provider,
        versions=options.versions,
        members=tuple(choices[1:]),
        passes=() if plan is None else (plan,),
        averaged=True,
        preprocessing=options.preprocessing,
    )
    members = Members(sessions, [choice.kind for choice in choices])
    model = AveragedModel(members, top_k, plan)
    return LoadedModel(model, found, numbers=len(files) * first.n_classes)


def _try(
    loaded: LoadedModel,
    first: OnnxSession,
    inputs: Mapping[str, Array],
    probes: Sequence[Probed],
    place: str,
) -> dict[str, float]:
    """Try the members on a few rows, compare them with their own answers, and time them."""
    model = loaded.answering
    if not isinstance(model, AveragedModel):
        raise TypeError("expected an ensemble")
    fixed, numbers = loaded.description.fixed_batch, loaded.numbers
    rows = timed_rows(inputs, fixed, [len(probes)], numbers=numbers)
    n_rows = min(len(next(iter(rows.values()))), len(next(iter(inputs.values()))))
    logs = model.passes(rows, place)
    for position, probed in enumerate(probes):
        verify_scores(probed.choice, probed.values[:n_rows], logs[:n_rows, position])
    costs = {
        PLAIN: milliseconds_a_row(lambda: first.run(first.output_names, rows, place=place), n_rows)
    }
    if model.plan is not None:
        costs[ENSEMBLE] = milliseconds_a_row(lambda: model.passes(rows, place), n_rows)
        advice = "its members answer alike; send different ones"
        check_spread(ENSEMBLE, on_finite_rows(covariance_norm, logs), len(probes), advice)
    return costs
