"""Comparison of a model's answers on one execution provider with records of another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from howsure.events import HeadOutputs
from howsure.statistics.arrays import Floats
from howsure.statistics.measures import parse_measure
from howsure.statistics.softmax import BINARY, decision_scores
from service.predictions.served_calibration import ServedEvent


@dataclass(frozen=True)
class Tolerance:
    """Largest difference between two providers that is explained by rounding.

    An uncertainty may differ by ``relative`` of its value, or of the measure's median where that
    is larger, and by ``of_largest`` of the largest value.
    """

    relative: float
    of_largest: float

    def allows(self, found: Floats, recorded: Floats) -> NDArray[np.bool_]:
        """Return for each value whether it equals the recorded one within the tolerance."""
        size = np.abs(recorded)
        near = self.relative * np.maximum(size, np.median(size)) + self.of_largest * size.max()
        return np.asarray(np.abs(found - recorded) <= near)


# Kernels sum in different orders: about four digits of the softmax's tail agree, fewer of
# differences between runs, and three in half precision.
ONE_RUN = Tolerance(relative=1e-3, of_largest=1e-6)
SEVERAL_RUNS = Tolerance(relative=2e-2, of_largest=1e-4)
HALF_PRECISION = Tolerance(relative=3e-2, of_largest=1e-4)


@dataclass(frozen=True)
class RecordedRows:
    """Records of some rows: top classes and their logits, best first, and uncertainties."""

    top_classes: NDArray[np.int32]
    top_logits: NDArray[np.float32]
    uncertainty: Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class ProviderDifferences:
    """Number of compared rows, of rows that differ, and of each kind of difference."""

    rows: int
    differing: int
    classes: int
    bins: int
    uncertainties: int


def compare_providers(
    answered: HeadOutputs,
    recorded: RecordedRows,
    events: Sequence[ServedEvent],
    *,
    half_precision: bool = False,
    threshold: float | None = None,
) -> ProviderDifferences:
    """Count the rows whose answers differ from the records.

    A different class counts unless its recorded logit equals the largest within rounding. A
    different uncertainty counts if it exceeds the `Tolerance`. A different bin counts only with a
    different uncertainty: otherwise an edge lies within the tolerance. A row within rounding of the
    decision ``threshold`` of two classes may have the other class, and so another uncertainty.
    """
    relative = (HALF_PRECISION if half_precision else ONE_RUN).relative
    other_class = _other_class(answered, recorded, relative, threshold)
    is_swapped = answered.top_classes[:, 0] != recorded.top_classes[:, 0]
    compared = ~is_swapped | other_class if threshold is not None else np.ones_like(is_swapped)
    other_bin = np.zeros_like(other_class)
    other_value = np.zeros_like(other_class)
    for event in events:
        tolerance = _tolerance(event.measure, half_precision=half_precision)
        values = recorded.uncertainty[event.column]
        got = event.uncertainty(answered, None)
        is_other = ~tolerance.allows(got.astype(np.float64), values.astype(np.float64)) & compared
        other_value |= is_other
        other_bin |= is_other & (event.table.look_up(got).bin != event.table.look_up(values).bin)
    return ProviderDifferences(
        rows=len(other_class),
        differing=int(np.count_nonzero(other_class | other_value)),
        classes=int(np.count_nonzero(other_class)),
        bins=int(np.count_nonzero(other_bin)),
        uncertainties=int(np.count_nonzero(other_value)),
    )


def _tolerance(measure: str, *, half_precision: bool) -> Tolerance:
    if half_precision:
        return HALF_PRECISION
    return SEVERAL_RUNS if parse_measure(measure).kind == "multi_pass" else ONE_RUN


def _other_class(
    answered: HeadOutputs, recorded: RecordedRows, relative: float, threshold: float | None
) -> NDArray[np.bool_]:
    """Return the rows whose first class is not among the best of the record within rounding.

    Both logits may be off, hence twice the tolerance; logits are logarithms of scores, hence
    relative.
    """
    first, logits = answered.top_classes[:, :1], recorded.top_logits
    if threshold is not None:
        logits = logits + decision_scores(np.zeros((1, BINARY)), threshold)[0, recorded.top_classes]
    is_near = (recorded.top_classes == first) & (logits >= logits[:, :1] - 2 * relative)
    return np.asarray(~is_near.any(axis=1))
