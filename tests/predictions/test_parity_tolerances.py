"""Tolerances between two execution providers."""

from collections.abc import Mapping

import numpy as np
import pytest

from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable
from service.predictions.provider_parity import ProviderDifferences, RecordedRows, compare_providers
from service.predictions.served_calibration import ServedEvent
from service.runner.model_output import HeadOutputs

N_ROWS = 8
VALUES = np.array([1e-9, 1e-4, 0.1, 0.2, 0.3, 0.4, 0.5, 2.0], np.float32)
RATES = {"probability": [0.9, 0.5], "lower": [0.4, 0.4], "upper": [0.9, 0.9]}
TABLE = BinTable(
    edges=np.array([-np.inf, 0.25, np.inf], np.float32),
    counts=np.array([4, 4]),
    hits=np.array([2, 2]),
    prior=BetaPrior(0.5, 1.0),
    mean_uncertainty=np.array([0.1, 0.8]),
    requested_bins=2,
    **{name: np.array(values) for name, values in RATES.items()},
)


def differences(
    values: Mapping[int, float] = {},
    *,
    recorded: Mapping[int, float] = {},
    first: int = 3,
    gap: float = 1.0,
    measure: str = "entropy",
    half: bool = False,
) -> ProviderDifferences:
    """Compare rows whose first row is answered by class ``first``, with other values by row."""
    classes = np.full((N_ROWS, 3), 7, np.int64)
    classes[:, 0] = [first, *[3] * (N_ROWS - 1)]
    now, then = VALUES.copy(), VALUES.copy()
    for array, changes in ((now, values), (then, recorded)):
        array[list(changes)] = list(changes.values())
    rows = RecordedRows(
        top_classes=np.tile(np.array([3, 1, 2], np.int32), (N_ROWS, 1)),
        top_logits=np.tile(np.array([0, -gap, -9], np.float32), (N_ROWS, 1)),
        uncertainty={"u": then},
    )
    answered = HeadOutputs(classes, np.full((N_ROWS, 3), 0.3, np.float32), {"u": now})
    event = ServedEvent(1, measure, "u", TABLE)
    return compare_providers(answered, rows, [event], half_precision=half)


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
    for sign in (-1, 1):
        near, far = (
            differences({7: VALUES[7] * (1 + share * sign * allowed)}, measure=measure, half=half)
            for share in (0.9, 1.5)
        )
        assert near.differing == 0
        assert far == ProviderDifferences(
            rows=N_ROWS, differing=1, classes=0, bins=0, uncertainties=1
        )


@pytest.mark.parametrize(
    ("options", "differing", "kinds"),
    [
        # Tiny values may differ by the tolerance of the median.
        ({"values": {0: 2e-4}}, 0, {}),
        ({"values": {0: 1e-3}}, 1, {"uncertainties": 1}),
        ({"values": {3: 0.26}}, 1, {"bins": 1}),
        # An edge within rounding may be crossed.
        ({"values": {3: 0.25002}, "recorded": {3: 0.24999}}, 0, {"bins": 0}),
        # Another class counts, unless it was nearly first.
        ({"first": 1, "gap": 0.0019}, 0, {"classes": 0}),
        ({"first": 1, "gap": 0.0021}, 1, {"classes": 1}),
        ({"first": 2, "gap": 0.0}, 1, {"classes": 1}),
        ({"first": 9, "gap": 0.0}, 1, {"classes": 1}),
        # A row that differs in all is one row.
        ({"values": {0: 5.0}, "first": 9}, 1, {"classes": 1, "uncertainties": 1}),
    ],
)
def test_rows_that_differ(options, differing, kinds) -> None:
    found = differences(**options)
    assert found.differing == differing
    assert {name: getattr(found, name) for name in kinds} == kinds
