"""Several answers whose mean probability predicts: an ensemble, or passes of a stochastic graph."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from service.core.arrays import Floats, Labels
from service.core.passes.covariance_norm import covariance_norm
from service.core.passes.mean_probability import mean_log_probability
from service.core.passes.pass_records import averaged_columns
from service.core.ranked import rank_scores, recorded_classes
from service.core.records import Records, build_records, score_uncertainty
from service.errors import InvalidOnnxModel
from service.graph.names import PREFIX
from service.graph.output import Kind
from service.graph.serving import SCORES, TOP_CLASSES, TOP_SCORES
from service.model_rules import ModelRule
from service.runner.child.class_logs import log_probabilities
from service.runner.child.finite_rows import on_finite_rows
from service.runner.child.noise_feeds import NoiseFeeds
from service.runner.child.onnx_session import OnnxSession
from service.runner.frames import Array
from service.runner.pass_plan import ENSEMBLE, PassPlan


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
        ranked = rank_scores(scores, n_top=recorded_classes(scores.shape[1], self.top_k))
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
