"""Tolerances between two execution providers."""

import numpy as np
import pytest

from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable
from service.predictions.provider_parity import ProviderDifferences, RecordedRows, compare_providers
from service.predictions.served_calibration import ServedEvent
from service.runner.model_output import HeadOutputs

N_ROWS = 8
VALUES = np.array([1e-9, 1e-4, 0.1, 0.2, 0.3, 0.4, 0.5, 2.0], np.float32)
TABLE = BinTable(
    edges=np.array([-np.inf, 0.25, np.inf], np.float32),
    counts=np.array([4, 4]),
    hits=np.array([2, 2]),
    prior=BetaPrior(0.5, 1.0),
    probability=np.array([0.9, 0.5]),
    lower=np.array([0.4, 0.4]),
    upper=np.array([0.9, 0.9]),
    mean_uncertainty=np.array([0.1, 0.8]),
    requested_bins=2,
)


def found(
    values=VALUES, *, recorded=VALUES, first=3, gap=1.0, measure="entropy", half=False
) -> ProviderDifferences:
    """Compare rows whose first row is answered by class ``first``."""
    classes = np.full((N_ROWS, 3), 7, np.int64)
    classes[:, 0] = [first, *[3] * (N_ROWS - 1)]
    rows = RecordedRows(
        top_classes=np.tile(np.array([3, 1, 2], np.int32), (N_ROWS, 1)),
        top_logits=np.tile(np.array([0, -gap, -9], np.float32), (N_ROWS, 1)),
        uncertainty={"u": recorded},
    )
    answered = HeadOutputs(classes, np.full((N_ROWS, 3), 0.3, np.float32), {"u": values})
    event = ServedEvent(1, measure, "u", TABLE)
    return compare_providers(answered, rows, [event], half_precision=half)


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
@pytest.mark.parametrize("sign", [-1, 1])
def test_an_uncertainty_may_differ_by_so_much_of_its_value(measure, half, allowed, sign) -> None:
    near = changed(7, VALUES[7] * (1 + 0.9 * sign * allowed))
    far = changed(7, VALUES[7] * (1 + 1.5 * sign * allowed))
    assert found(near, measure=measure, half=half).differing == 0
    assert found(far, measure=measure, half=half) == ProviderDifferences(
        rows=N_ROWS, differing=1, classes=0, bins=0, uncertainties=1
    )


def test_tiny_values_may_differ_by_the_tolerance_of_the_median() -> None:
    assert found(changed(0, 2e-4)).differing == 0
    assert found(changed(0, 1e-3)).differing == 1


def test_another_bin_counts_where_the_value_is_another() -> None:
    assert found(changed(3, 0.26)).bins == 1


def test_an_edge_within_rounding_may_be_crossed() -> None:
    differences = found(changed(3, 0.25002), recorded=changed(3, 0.24999))
    assert (differences.differing, differences.bins) == (0, 0)


@pytest.mark.parametrize(
    ("first", "gap", "differing"), [(1, 0.0019, 0), (1, 0.0021, 1), (2, 0.0, 1), (9, 0.0, 1)]
)
def test_another_class_counts_unless_it_was_nearly_first(first, gap, differing) -> None:
    differences = found(first=first, gap=gap)
    assert (differences.differing, differences.classes) == (differing, differing)


def test_a_row_that_differs_in_all_is_one_row() -> None:
    differences = found(changed(0, 5.0), first=9)
    assert (differences.differing, differences.classes, differences.uncertainties) == (1, 1, 1)
