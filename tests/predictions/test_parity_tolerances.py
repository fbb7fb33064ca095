"""Tolerances between two execution providers."""

import numpy as np
import pytest

from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable
from service.predictions.provider_parity import RecordedRows, compare_providers
from service.predictions.served_calibration import ServedEvent
from service.runner.model_output import HeadOutputs

N_ROWS = 8
VALUES = np.array([1e-9, 1e-4, 0.1, 0.2, 0.3, 0.4, 0.5, 2.0], np.float32)


def table() -> BinTable:
    third = np.full(2, 0.5)
    return BinTable(
        edges=np.array([-np.inf, 0.25, np.inf], np.float32),
        counts=np.array([4, 4]),
        hits=np.array([2, 2]),
        prior=BetaPrior(0.5, 1.0, degenerate=False),
        probability=np.array([0.9, 0.5]),
        lower=third - 0.1,
        upper=third + 0.4,
        mean_uncertainty=np.array([0.1, 0.8]),
        requested_bins=2,
        lookup="step",
        monotone=False,
        interval=IntervalOptions(),
    )


def recorded(gap: float = 1.0) -> RecordedRows:
    return RecordedRows(
        top_classes=np.tile(np.array([3, 1, 2], np.int32), (N_ROWS, 1)),
        top_logits=np.tile(np.array([0, -gap, -9], np.float32), (N_ROWS, 1)),
        uncertainty={"u": VALUES},
    )


def answered(values: np.ndarray = VALUES, first: int = 3) -> HeadOutputs:
    classes = np.full((N_ROWS, 3), 7, np.int64)
    classes[:, 0] = 3
    classes[0, 0] = first
    return HeadOutputs(classes, np.full((N_ROWS, 3), 0.3, np.float32), {"u": values})


def found(values=VALUES, *, first=3, gap=1.0, measure="entropy", half=False):
    event = ServedEvent(1, measure, "u", table())
    return compare_providers(answered(values, first), recorded(gap), [event], half_precision=half)


def changed(row: int, value: float) -> np.ndarray:
    values = VALUES.copy()
    values[row] = value
    return values


@pytest.mark.parametrize(
    ("measure", "half", "allowed"),
    [
        ("entropy", False, 1e-3),
        ("dropout_variance", False, 2e-2),
        ("entropy", True, 3e-2),
        ("output:spread", False, 1e-3),
    ],
)
def test_an_uncertainty_may_differ_by_so_much_of_its_value(measure, half, allowed) -> None:
    for row in (3, 7):
        for sign in (-1, 1):
            near = changed(row, VALUES[row] * (1 + 0.9 * sign * allowed))
            far = changed(row, VALUES[row] * (1 + 1.5 * sign * allowed))
            assert found(near, measure=measure, half=half).differing == 0
            differences = found(far, measure=measure, half=half)
            assert (differences.differing, differences.uncertainties) == (1, 1)
            assert (differences.rows, differences.bins) == (N_ROWS, 0)


def test_what_is_next_to_nothing_may_differ_by_that_of_the_median() -> None:
    assert found(changed(0, 2e-4)).differing == 0
    assert found(changed(0, 1e-3)).differing == 1


def test_another_bin_counts_where_the_value_is_another() -> None:
    differences = found(changed(3, 0.26))
    assert (differences.differing, differences.uncertainties, differences.bins) == (1, 1, 1)


def test_an_edge_within_rounding_may_be_crossed() -> None:
    values, gone = VALUES.copy(), recorded()
    values[3] = 0.25002
    gone.uncertainty["u"][3] = 0.24999
    try:
        event = ServedEvent(1, "entropy", "u", table())
        differences = compare_providers(answered(values), gone, [event])
    finally:
        gone.uncertainty["u"][3] = 0.2
    assert differences.differing == 0


@pytest.mark.parametrize(
    ("first", "gap", "differing"),
    [(3, 1.0, 0), (1, 0.0, 0), (1, 0.0019, 0), (1, 0.0021, 1), (2, 0.0, 1), (9, 0.0, 1)],
)
def test_another_class_counts_unless_it_was_nearly_first(first, gap, differing) -> None:
    differences = found(first=first, gap=gap)
    assert (differences.differing, differences.classes) == (differing, differing)


def test_a_row_that_differs_in_all_is_one_row() -> None:
    differences = found(changed(0, 5.0), first=9)
    assert (differences.differing, differences.classes, differences.uncertainties) == (1, 1, 1)
