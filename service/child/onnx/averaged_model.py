"""Models that predict by a mean probability: ensembles, and graphs with random operators."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from howsure.bins_document.pass_plan import ENSEMBLE, PLAIN, PassPlan
from howsure.onnx_head.builder import PREFIX
from howsure.outputs import OutputKind
from howsure.statistics.arrays import Floats, Labels
from howsure.statistics.learned.inputs import is_input
from howsure.statistics.measures.passes import (
    averaged_columns,
    covariance_norm,
    mean_log_probability,
)
from howsure.statistics.records.build import build_records, ranked_outputs
from howsure.statistics.records.records import Records
from service.child.onnx.batches import apply_to_finite_rows, log_probabilities
from service.child.onnx.loaded_model import LoadedModel
from service.child.onnx.noise import NoiseFeeds, StochasticPasses, check_same_noise, neutral_feeds
from service.child.onnx.onnx_file import OnnxFile, Probed
from service.child.onnx.session import OnnxSession
from service.child.onnx.trial import (
    TIMED_PASSES,
    check_spread,
    cost_of,
    milliseconds_a_row,
    timed_rows,
    verify_scores,
)
from service.errors import InvalidConfig, InvalidOnnxModel, ModelRule
from service.graph.description import OutputChoice, quote_all
from service.graph.noise.random_operators import expose_random, refuse_random
from service.graph.output.plan import plan_output
from service.graph.serving import SCORES, TOP_CLASSES, TOP_SCORES
from service.runner.messages.frames import Array
from service.runner.messages.onnx_models import LoadedOnnxModel
from service.runner.messages.requests import LoadRequest


@dataclass(frozen=True, eq=False)
class Members:
    """The models of an ensemble."""

    sessions: Sequence[OnnxSession]
    kinds: Sequence[OutputKind]

    def log_probabilities(self, rows: Mapping[str, Array], place: str) -> Iterator[Floats]:
        """Yield each member's log-probabilities."""
        for session, kind in zip(self.sessions, self.kinds, strict=True):
            yield log_probabilities(session.run([SCORES], rows, place=place)[SCORES], kind)


@dataclass(frozen=True, eq=False)
class AveragedModel:
    """Predicts the mean probability, and computes its uncertainties.

    With ``plan``, also the variance between the answers; ``inputs`` are those of the learned
    measure, ``threshold`` is the decision threshold of two classes.
    """

    source: Members | StochasticPasses
    top_k: tuple[int, ...]
    plan: PassPlan | None
    inputs: tuple[str, ...] = ()
    threshold: float | None = None

    def answer(self, rows: Mapping[str, Array], place: str) -> dict[str, Array]:
        """Return top classes and uncertainties of the mean, as a head in a graph would.

        A row without an answer has top scores of NaN.
        """
        logs = self.passes(rows, place)
        scores = apply_to_finite_rows(mean_log_probability, logs)
        has_answer = np.isfinite(scores.max(axis=1, keepdims=True))
        scores = np.where(has_answer, scores, 0.0)
        classes, probabilities, measured = ranked_outputs(
            scores, top_k=self.top_k, inputs=self.inputs, threshold=self.threshold
        )
        answer: dict[str, Array] = {
            TOP_CLASSES: classes,
            TOP_SCORES: np.where(has_answer, probabilities.astype(np.float32), np.nan),
        } | {PREFIX + name: measured[name] for name in measured}
        if self.plan is not None:
            variance = apply_to_finite_rows(covariance_norm, logs)
            answer[PREFIX + ENSEMBLE] = variance.astype(np.float32)
        return answer

    def observe(self, rows: Mapping[str, Array], place: str) -> dict[str, Array]:
        """Return the logarithm of the mean probability, and of the probabilities of all answers."""
        logs = self.passes(rows, place)
        return {SCORES: apply_to_finite_rows(mean_log_probability, logs), ENSEMBLE: logs}

    def record(
        self, seen: Mapping[str, Array], labels: Labels, *, keys: Array, top_k: Sequence[int]
    ) -> Records:
        """Make records of observed rows."""
        threshold = self.threshold
        records = build_records(
            seen[SCORES], labels, tie_keys=keys, top_k=top_k, threshold=threshold
        )
        if self.plan is None:
            return records
        return records.with_passes(
            averaged_columns(ENSEMBLE, seen[ENSEMBLE], labels, threshold=threshold)
        )

    def passes(self, rows: Mapping[str, Array], place: str) -> Floats:
        """Return the log-probabilities of all answers, shape (n_rows, answers, n_classes)."""
        logs = list(self.source.log_probabilities(rows, place))
        if len({found.shape for found in logs}) > 1:
            raise InvalidOnnxModel.because(
                ModelRule.ANSWERS_DIFFER, "the shape of its output differs from pass to pass"
            )
        return np.stack(logs, axis=1)


def _refuse_other_measures(request: LoadRequest, needed: str) -> None:
    """Refuse measures that need a single answer to each row."""
    others = [plan.measure for plan in request.passes if plan.measure != ENSEMBLE]
    if others or request.scalar_outputs:
        what = ", ".join(others) or "an output of the model as a measure"
        raise InvalidConfig.at("config.measures", f"{what} needs {needed}")


def averaged_model(
    source: Members | StochasticPasses, found: LoadedOnnxModel, request: LoadRequest
) -> AveragedModel:
    """Return the model with the requested inputs of the learned measure, sorted."""
    return AveragedModel(
        source,
        found.top_k,
        next(iter(found.passes), None),
        tuple(sorted(name for name in request.columns or () if is_input(name))),
        found.output.decision_threshold,
    )


class Ensemble:
    """Loads the members of an ensemble."""

    def __init__(self, files: Sequence[OnnxFile], request: LoadRequest) -> None:
        self._files = files
        self._request = request
        _refuse_other_measures(request, "one model, not an ensemble")
        self._run_alike()
        self._check_inputs()

    def probe(self, inputs: Mapping[str, Array]) -> Sequence[Probed]:
        """Run each member on the trial rows, and choose its output."""
        probes = [self._probe(file, inputs, position) for position, file in enumerate(self._files)]
        self._run_alike()
        self._check_classes([probed.choice for probed in probes])
        return probes

    def plan(
        self,
        probes: Sequence[Probed],
        inputs: Mapping[str, Array],  # noqa: ARG002 - as of other models
    ) -> tuple[PassPlan, ...]:
        """Return the plan of the variance, if requested: each member is a pass."""
        return tuple(replace(plan, passes=len(probes)) for plan in self._request.passes)

    def build(self, choices: Sequence[OutputChoice], plans: tuple[PassPlan, ...]) -> LoadedModel:
        """Load the members' scores."""
        files = self._files
        sessions = [file.scores(choice) for file, choice in zip(files, choices, strict=True)]
        found = files[0].describe(choices, sessions[0].provider, plans, averaged=True)
        members = Members(sessions, [choice.kind for choice in choices])
        model = averaged_model(members, found, self._request)
        return LoadedModel(model, found, numbers=len(files) * found.n_classes)

    def try_out(
        self, loaded: LoadedModel, probes: Sequence[Probed], inputs: Mapping[str, Array]
    ) -> dict[str, float]:
        """Compare the members with their own answers on a few rows, and time them."""
        model, place = loaded.answering, self._request.location
        if not isinstance(model, AveragedModel) or not isinstance(model.source, Members):
            raise TypeError("expected an ensemble")
        fixed = loaded.description.fixed_batch
        rows = timed_rows(inputs, fixed, [len(probes)], numbers=loaded.numbers)
        n_rows = min(len(next(iter(rows.values()))), len(next(iter(inputs.values()))))
        logs = model.passes(rows, place)
        for position, probed in enumerate(probes):
            verify_scores(probed.choice, probed.values[:n_rows], np.exp(logs[:n_rows, position]))
        first = model.source.sessions[0]
        plain = milliseconds_a_row(lambda: first.run(first.output_names, rows, place=place), n_rows)
        if model.plan is None:
            return {PLAIN: plain}
        advice = "its members answer alike; send different ones"
        check_spread(ENSEMBLE, apply_to_finite_rows(covariance_norm, logs), len(probes), advice)
        cost = milliseconds_a_row(lambda: model.passes(rows, place), n_rows)
        return {PLAIN: plain, ENSEMBLE: cost}

    def _run_alike(self) -> None:
        """Run all members one row at a time if one of them has to."""
        reasons = [file.description.one_by_one for file in self._files]
        if any(reasons):
            for file in self._files:
                file.run_one_by_one(max(reasons))

    def _check_inputs(self) -> None:
        first = self._files[0].description
        takes = [str(spec) for spec in first.inputs]
        for position, file in enumerate(self._files[1:], start=1):
            own = [str(spec) for spec in file.description.inputs]
            if own != takes or file.description.fixed_batch != first.fixed_batch:
                raise InvalidOnnxModel.because(
                    ModelRule.MEMBERS_DIFFER,
                    f"the members of an ensemble take the same inputs; this one takes "
                    f"{'; '.join(own)} where the first takes {'; '.join(takes)}; export all with "
                    "the same names and shapes of inputs",
                    location=f"model[{position}]",
                )

    def _probe(self, file: OnnxFile, inputs: Mapping[str, Array], position: int) -> Probed:
        """Choose a member's output; errors name the member."""
        request = self._request
        try:
            plan = plan_output(file.model, name=request.output_name, kind=request.output_kind)
            refuse_random(file.model, plan.tensor)
            return file.probe(plan, (), inputs)
        except InvalidOnnxModel as error:
            broken = error.violations[0]
            raise InvalidOnnxModel.at(
                f"model[{position}]", broken.message, rule=broken.rule
            ) from error

    def _check_classes(self, choices: Sequence[OutputChoice]) -> None:
        first, labels = choices[0], self._files[0].description.class_labels or ()
        for position, (file, choice) in enumerate(zip(self._files, choices, strict=True)):
            own = file.description.class_labels or ()
            if choice.n_classes != first.n_classes:
                found = f"{choice.n_classes} where the first has {first.n_classes}"
            elif own != labels and {*map(type, own)} == {*map(type, labels)}:
                # Numbers may stand for another member's names; other numbers or names may not.
                named = [quote_all([str(label) for label in names]) for names in (own, labels)]
                found = f"{named[0]} where the first has {named[1]}"
            else:
                continue
            raise InvalidOnnxModel.because(
                ModelRule.MEMBERS_DIFFER,
                "the members of an ensemble tell the same classes apart, in the same order; "
                f"this one has {found}",
                location=f"model[{position}]",
            )


class StochasticGraph:
    """Loads a graph with random operators."""

    def __init__(self, file: OnnxFile, request: LoadRequest) -> None:
        _refuse_other_measures(request, f"a model without random operators, unlike {ENSEMBLE}")
        self._file = file
        self._request = request
        name = request.choices[0].name if request.choices else request.output_name
        self._output = plan_output(file.model, name=name, kind=request.output_kind)
        self._sites = expose_random(file.model, self._output.tensor)

    def probe(self, inputs: Mapping[str, Array]) -> Sequence[Probed]:
        """Run the graph on the trial rows, without noise, and choose its output."""
        return [self._file.probe(self._output, self._sites, inputs)]

    def plan(
        self,
        probes: Sequence[Probed],  # noqa: ARG002 - as of other models
        inputs: Mapping[str, Array],  # noqa: ARG002 - as of other models
    ) -> tuple[PassPlan, ...]:
        """Return the requested plan, and start again with the graph of the file."""
        self._file.renew()
        self._sites = expose_random(self._file.model, self._output.tensor)
        return self._request.passes

    def build(self, choices: Sequence[OutputChoice], plans: tuple[PassPlan, ...]) -> LoadedModel:
        """Load the scores of one pass."""
        (choice,), (plan,), file = choices, plans, self._file
        session = file.scores(choice, self._sites)
        fixed = file.description.fixed_batch
        noise = NoiseFeeds(session, self._sites, seed=plan.seed, fixed_batch=fixed)
        found = file.describe(choices, session.provider, plans, averaged=True)
        passes = StochasticPasses(noise, choice.kind, plan.passes)
        model = averaged_model(passes, found, self._request)
        return LoadedModel(model, found, numbers=plan.passes * choice.n_classes)

    def try_out(
        self, loaded: LoadedModel, probes: Sequence[Probed], inputs: Mapping[str, Array]
    ) -> dict[str, float]:
        """Try the passes on a few rows, and time them."""
        (probed,), model, place = probes, loaded.answering, self._request.location
        if not isinstance(model, AveragedModel) or not isinstance(model.source, StochasticPasses):
            raise TypeError("expected a graph with random operators")
        passes, fixed = model.source.passes, loaded.description.fixed_batch
        logs = model.passes(timed_rows(inputs, fixed, [passes], numbers=loaded.numbers), place)
        variance = apply_to_finite_rows(covariance_norm, logs)
        check_spread(ENSEMBLE, variance, passes, "its random operators change nothing")
        rows = timed_rows(inputs, fixed, [TIMED_PASSES], numbers=loaded.numbers)
        n_rows = len(next(iter(rows.values())))
        few = replace(model, source=replace(model.source, passes=min(passes, TIMED_PASSES)))
        check_same_noise(lambda fed: few.passes(fed, place), rows, fixed)
        names, neutral = probed.session.output_names, neutral_feeds(self._sites)
        plain = milliseconds_a_row(
            lambda: probed.session.run(names, {**rows, **neutral}, place=place), n_rows
        )
        return {PLAIN: plain, ENSEMBLE: cost_of(lambda: few.passes(rows, place), passes)}
