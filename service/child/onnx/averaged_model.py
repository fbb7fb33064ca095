"""Several answers whose mean probability predicts: an ensemble, or passes of a stochastic graph."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from howsure.statistics.arrays import Floats, Labels
from howsure.statistics.measures.passes import (
    averaged_columns,
    covariance_norm,
    mean_log_probability,
)
from howsure.statistics.records.build import build_records, score_uncertainty
from howsure.statistics.records.records import Records
from howsure.statistics.softmax import n_recorded_classes, rank_scores
from service.child.onnx.batches import log_probabilities, on_finite_rows
from service.child.onnx.loaded_model import LoadedModel
from service.child.onnx.noise import NoiseFeeds, check_same_noise, quiet_feeds
from service.child.onnx.onnx_file import OnnxFile, Probed
from service.child.onnx.session import OnnxSession
from service.child.onnx.trial import (
    TIMED_PASSES,
    check_spread,
    fitted_trial,
    milliseconds_a_row,
    timed_rows,
    verify_scores,
)
from service.errors import InvalidConfig, InvalidOnnxModel, ModelRule
from service.graph.description import Kind, NoiseSite, OutputChoice, quote_all
from service.graph.noise.random_operators import expose_random, refuse_random
from service.graph.output.plan import OutputPlan, plan_output
from service.graph.proto import PREFIX
from service.graph.serving import SCORES, TOP_CLASSES, TOP_SCORES
from service.runner.messages.frames import Array
from service.runner.messages.onnx_models import (
    ENSEMBLE,
    PLAIN,
    LoadedOnnxModel,
    LoadOptions,
    PassPlan,
)


class Voices(Protocol):
    """What answers more than once."""

    def logs(self, rows: Mapping[str, Array], place: str) -> Iterator[Floats]:
        """Yield each answer's log-probabilities, float64 (n_rows, n_classes)."""


@dataclass(frozen=True, eq=False)
class Members:
    """The models of an ensemble."""

    sessions: Sequence[OnnxSession]
    kinds: Sequence[Kind]

    def logs(self, rows: Mapping[str, Array], place: str) -> Iterator[Floats]:
        """Yield each member's log-probabilities."""
        for session, kind in zip(self.sessions, self.kinds, strict=True):
            yield log_probabilities(session.run([SCORES], rows, place=place)[SCORES], kind)


@dataclass(frozen=True, eq=False)
class StochasticPasses:
    """Passes of one graph with random operators."""

    session: OnnxSession
    kind: Kind
    noise: NoiseFeeds
    passes: int

    def logs(self, rows: Mapping[str, Array], place: str) -> Iterator[Floats]:
        """Yield each pass's log-probabilities."""
        for number in range(self.passes):
            feeds = {**rows, **self.noise.of_pass(rows, number, place)}
            yield log_probabilities(
                self.session.run([SCORES], feeds, place=place)[SCORES], self.kind
            )


@dataclass(frozen=True, eq=False)
class AveragedModel:
    """The mean probability as the prediction, and its uncertainties, computed here.

    ``plan`` asks for the variance between the answers as well.
    """

    voices: Voices
    top_k: tuple[int, ...]
    plan: PassPlan | None

    def answer(self, rows: Mapping[str, Array], place: str) -> dict[str, Array]:
        """Return the logarithm of the mean probability, and the variance."""
        logs = self.passes(rows, place)
        seen: dict[str, Array] = {SCORES: on_finite_rows(mean_log_probability, logs)}
        if self.plan is not None:
            seen[PREFIX + ENSEMBLE] = on_finite_rows(covariance_norm, logs).astype(np.float32)
        return seen

    def finish(self, part: dict[str, Array]) -> dict[str, Array]:
        """Return what a head in a graph would: top classes and uncertainties of the mean.

        A row without an answer has top scores that are no numbers.
        """
        scores = part.pop(SCORES)
        has_answer = np.isfinite(scores.max(axis=1, keepdims=True))
        scores = np.where(has_answer, scores, 0.0)
        ranked = rank_scores(scores, n_top=n_recorded_classes(scores.shape[1], self.top_k))
        top_weights = np.take_along_axis(ranked.weights, ranked.top_classes, axis=1)
        finished: dict[str, Array] = {
            TOP_CLASSES: ranked.top_classes,
            TOP_SCORES: np.where(
                has_answer, (top_weights / ranked.total[:, None]).astype(np.float32), np.nan
            ),
        }
        measured = score_uncertainty(scores, top_k=self.top_k)
        return finished | {PREFIX + name: measured[name] for name in measured} | part

    def observe(self, rows: Mapping[str, Array], place: str) -> dict[str, Array]:
        """Return the logarithm of the mean probability, and those of all answers."""
        logs = self.passes(rows, place)
        return {SCORES: on_finite_rows(mean_log_probability, logs), ENSEMBLE: logs}

    def record(
        self, seen: Mapping[str, Array], labels: Labels, *, keys: Array, top_k: Sequence[int]
    ) -> Records:
        """Make records of what was observed."""
        records = build_records(seen[SCORES], labels, tie_keys=keys, top_k=top_k)
        if self.plan is None:
            return records
        return records.with_passes(averaged_columns(ENSEMBLE, seen[ENSEMBLE], labels))

    def passes(self, rows: Mapping[str, Array], place: str) -> Floats:
        """Return the log-probabilities of all answers, shape (n_rows, answers, n_classes)."""
        logs = list(self.voices.logs(rows, place))
        if len({found.shape for found in logs}) > 1:
            raise InvalidOnnxModel.because(
                ModelRule.ANSWERS_DIFFER, "its answers differ in shape from pass to pass"
            )
        return np.stack(logs, axis=1)


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
        return _load_stochastic(file, options, choice, sites, plan)
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
    loaded = _load_stochastic(file, options, probed.choice, sites, plan)
    costs = _try_stochastic(loaded, probed, sites, inputs, options.location)
    return replace(loaded, found=replace(loaded.found, costs=costs))


def _try_stochastic(
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


def _load_stochastic(
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
