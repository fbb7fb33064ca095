"""One ONNX model with its uncertainty head, its passes and its slopes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from howsure.bins_document.pass_plan import DROPOUT, LAST_LAYER, PassPlan
from howsure.onnx_head.builder import PREFIX
from howsure.statistics.arrays import Labels
from howsure.statistics.measures.gradient import SLOPE_MEASURES
from howsure.statistics.measures.passes import (
    PassColumns,
    averaged_columns,
    covariance_norm,
    slope_columns,
)
from howsure.statistics.records.build import build_records
from howsure.statistics.records.records import Records
from service.child.onnx.batches import apply_to_finite_rows, class_logs
from service.child.onnx.gradient import slopes_of
from service.child.onnx.noise import NoiseFeeds, StochasticPasses
from service.child.onnx.session import OnnxSession
from service.graph.description import OutputChoice
from service.graph.serving import (
    LAST_LAYER_LOGS,
    PACKED_OUTPUT,
    SCORES,
    TOP_CLASSES,
    TOP_SCORES,
)
from service.runner.messages.frames import Array


@dataclass(frozen=True, eq=False)
class SingleModel:
    """Sessions of the serving graph and of repeated runs.

    Attributes
    ----------
    session
        The model with its head.
    repeated
        The session for passes and slopes: the same, or one without the passes of the last layer,
        because the runtime always computes the whole graph.
    choice
        The output that is read.
    columns
        The uncertainties of the head.
    noise
        The noise of its Dropout nodes, if ``dropout`` is planned.
    slopes
        The plans of measures from slopes: they differ in the measure alone, and share their runs.
    is_packed
        Whether the graph has one output, the matrix of the head's outputs.
    """

    session: OnnxSession
    repeated: OnnxSession
    choice: OutputChoice
    columns: tuple[str, ...]
    dropout: PassPlan | None = None
    noise: NoiseFeeds | None = None
    last_layer: PassPlan | None = None
    slopes: tuple[PassPlan, ...] = ()
    is_packed: bool = False

    def words(self, rows: dict[str, Array], place: str) -> Array | None:
        """Return the head's outputs as one matrix; None if the graph has several outputs."""
        if not self.is_packed:
            return None
        return self.session.run_all([PACKED_OUTPUT], rows, place=place)[0]

    def answer(self, rows: Mapping[str, Array], place: str) -> dict[str, Array]:
        """Return the head's outputs, and the uncertainties that need further runs."""
        words = self.words(dict(rows), place)
        if words is not None:
            return {PACKED_OUTPUT: words}
        wanted = [TOP_CLASSES, TOP_SCORES, *(PREFIX + name for name in self.columns)]
        answer = self.run(wanted, rows, place)
        if self.dropout is not None:
            variance = apply_to_finite_rows(covariance_norm, self.passes(rows, place))
            answer[PREFIX + DROPOUT] = variance.astype(np.float32)
        for plan, slopes in zip(self.slopes, self.all_slopes(rows, place), strict=True):
            norm = SLOPE_MEASURES[plan.measure].norm(slopes, exact=not plan.divisible)
            answer[PREFIX + plan.measure] = norm.astype(np.float32)
        return answer

    def observe(self, rows: Mapping[str, Array], place: str) -> dict[str, Array]:
        """Return the data of records: scores, the head's uncertainties, passes."""
        wanted = [SCORES, *(PREFIX + name for name in self.columns)]
        if self.last_layer is not None:
            wanted.append(LAST_LAYER_LOGS)
        seen = self.run(wanted, rows, place)
        if self.dropout is not None:
            seen[DROPOUT] = self.passes(rows, place)
        for plan, slopes in zip(self.slopes, self.all_slopes(rows, place), strict=True):
            seen[plan.measure] = slopes
        return seen

    def record(
        self, seen: Mapping[str, Array], labels: Labels, *, keys: Array, top_k: Sequence[int]
    ) -> Records:
        """Make records of what was observed."""
        records = build_records(
            class_logs(seen[SCORES], self.choice.kind),
            labels,
            tie_keys=keys,
            uncertainty={name: seen[PREFIX + name] for name in self.columns},
            top_k=top_k,
            threshold=self.choice.decision_threshold,
        )
        for columns in self._of_passes(seen, labels):
            records = records.with_passes(columns)
        return records

    def _of_passes(self, seen: Mapping[str, Array], labels: Labels) -> list[PassColumns]:
        found, threshold = [], self.choice.decision_threshold
        if self.dropout is not None:
            columns = averaged_columns(DROPOUT, seen[DROPOUT], labels, threshold=threshold)
            found.append(columns)
        if self.last_layer is not None:
            logs = seen[LAST_LAYER_LOGS].astype(np.float64)
            columns = averaged_columns(LAST_LAYER, logs, labels, threshold=threshold)
            # Predictions serve the value of the graph: records have the same bits.
            columns.uncertainty[LAST_LAYER] = seen[PREFIX + LAST_LAYER]
            found.append(columns)
        for plan in self.slopes:
            columns = slope_columns(plan.measure, seen[plan.measure], exact=not plan.divisible)
            found.append(columns)
        return found

    def run(self, wanted: Sequence[str], rows: Mapping[str, Array], place: str) -> dict[str, Array]:
        """Run the head once, without noise."""
        neutral = self._neutral() if self.session is self.repeated else {}
        return self.session.run(wanted, {**rows, **neutral}, place=place)

    def passes(self, rows: Mapping[str, Array], place: str) -> Array:
        """Return the log-probabilities of all passes, shape (n_rows, passes, n_classes)."""
        if self.noise is None or self.dropout is None:
            raise RuntimeError("this model has no passes")
        passes = StochasticPasses(self.noise, self.choice.kind, self.dropout.passes)
        return np.stack([*passes.log_probabilities(rows, place)], axis=1)

    def all_slopes(self, rows: Mapping[str, Array], place: str) -> list[Array]:
        """Return the slopes along all directions, shape (n_rows, directions, ...), by plan."""
        if not self.slopes:
            return []
        measures = [plan.measure for plan in self.slopes]
        slopes = slopes_of(rows, self.slopes[0], lambda fed: self._logs(fed, place), measures)
        return list(slopes.values())

    def _logs(self, rows: Mapping[str, Array], place: str) -> Array:
        scores = self.repeated.run([SCORES], {**rows, **self._neutral()}, place=place)[SCORES]
        return class_logs(scores, self.choice.kind)

    def _neutral(self) -> dict[str, Array]:
        return {} if self.noise is None else self.noise.neutral()
