"""Tolerances between two execution providers."""

from collections.abc import Mapping

import numpy as np
import pytest

from howsure.events import HeadOutputs
from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable
from service.predictions.provider_parity import RecordedRows, compare_providers
from service.predictions.served_calibration import ServedEvent

VALUES = np.array([1e-9, 1e-4, 0.1, 0.2, 0.3, 0.4, 0.5, 2.0], np.float32)
N_ROWS = len(VALUES)
TABLE = BinTable(
    edges=np.array([-np.inf, 0.25, np.inf], np.float32),
    counts=np.array([4, 4]),
    hits=np.array([2, 2]),
    prior=BetaPrior(0.5, 1.0),
    mean_uncertainty=np.array([0.1, 0.8]),
    requested_bins=2,
    probability=np.array([0.9, 0.5]),
    lower=np.array([0.4, 0.4]),
    upper=np.array([0.9, 0.9]),
)


def changed(values: Mapping[int, float]) -> np.ndarray:
    array = VALUES.copy()
    array[list(values)] = list(values.values())
    return array


def differences(
    values: Mapping[int, float] = {},
    recorded: Mapping[int, float] = {},
    *,
    first: int = 3,
    gap: float = 1.0,
    measure: str = "entropy",
    half: bool = False,
) -> tuple[int, int, int, int]:
    """Compare rows, the first of which is answered by class ``first``, with other values by row.

    Return how many differ, and how many in class, bin and uncertainty.
    """
    rows = RecordedRows(
        top_classes=np.tile(np.array([3, 1, 2], np.int32), (N_ROWS, 1)),
        top_logits=np.tile(np.array([0, -gap, -9], np.float32), (N_ROWS, 1)),
        uncertainty={"u": changed(recorded)},
    )
    classes = np.array([[first, 7, 7], *[[3, 7, 7]] * (N_ROWS - 1)])
    scores = np.full((N_ROWS, 3), 0.3, np.float32)
    answered = HeadOutputs(classes, scores, {"u": changed(values)})
    event = ServedEvent(1, measure, "u", TABLE)
    differs = compare_providers(answered, rows, [event], half_precision=half)
    assert differs.rows == N_ROWS
    return differs.differing, differs.classes, differs.bins, differs.uncertainties


TOLERANCES = [("entropy", False, 1e-3), ("entropy", True, 3e-2)]
TOLERANCES += [("dropout_variance", False, 2e-2), ("output:spread", False, 1e-3)]


@pytest.mark.parametrize(("measure", "half", "allowed"), TOLERANCES)
def test_an_uncertainty_may_differ_by_so_much_of_its_value(measure, half, allowed) -> None:
    for sign in (-1, 1):
        for share, expected in ((0.9, (0, 0, 0, 0)), (1.5, (1, 0, 0, 1))):
            value = VALUES[7] * (1 + share * sign * allowed)
            assert differences({7: value}, measure=measure, half=half) == expected


@pytest.mark.parametrize(("beyond", "n_differing"), [(0.0019, 0), (0.0021, 1), (-0.0019, 0)])
def test_a_row_at_the_decision_threshold_may_get_the_other_class(beyond, n_differing) -> None:
    """Class 1 is predicted from 0.1 on: its logit is about log 9 below that of class 0."""
    recorded = RecordedRows(
        top_classes=np.array([[1, 0], [1, 0]], np.int32),
        top_logits=np.array([[0.0, np.log(9) - beyond], [0.0, -1.0]], np.float32),
        uncertainty={"u": np.array([2.3, 0.3], np.float32)},
    )
    answered = HeadOutputs(
        np.array([[0, 1], [1, 0]]),
        np.array([[0.9, 0.1], [0.7, 0.3]], np.float32),
        {"u": np.array([0.1, 0.3], np.float32)},
    )
    event = ServedEvent(1, "neg_log_pmax", "u", TABLE)
    differs = compare_providers(answered, recorded, [event], threshold=0.1)
    assert (differs.differing, differs.classes) == (n_differing, n_differing)


DIFFERENCES = [
    # Tiny values may differ by the tolerance of the median.
    ({"values": {0: 2e-4}}, (0, 0, 0, 0)),
    ({"values": {0: 1e-3}}, (1, 0, 0, 1)),
    ({"values": {3: 0.26}}, (1, 0, 1, 1)),
    # An edge within rounding may be crossed.
    ({"values": {3: 0.25002}, "recorded": {3: 0.24999}}, (0, 0, 0, 0)),
    # Another class counts, unless it was nearly first.
    ({"first": 1, "gap": 0.0019}, (0, 0, 0, 0)),
    ({"first": 1, "gap": 0.0021}, (1, 1, 0, 0)),
    ({"first": 2, "gap": 0.0}, (1, 1, 0, 0)),
    ({"first": 9, "gap": 0.0}, (1, 1, 0, 0)),
    # A row that differs in all is one row.
    ({"values": {0: 5.0}, "first": 9}, (1, 1, 1, 1)),
]


@pytest.mark.parametrize(("options", "expected"), DIFFERENCES)
def test_rows_that_differ(options, expected) -> None:
    assert differences(**options) == expected
