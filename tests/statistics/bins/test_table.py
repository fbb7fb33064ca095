"""Tables as stored: what follows from them, lookups, and rules of their arrays."""

import numpy as np
import pytest

from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable

STORED = {
    "edges": [-np.inf, 1.0, 2.0, np.inf], "counts": [10, 20, 10], "hits": [10, 15, 4],
    "prior": BetaPrior(0.725, 1.0), "probability": [0.95, 0.75, 0.42], "lower": [0.7, 0.5, 0.2],
    "upper": [1.0, 0.9, 0.7], "mean_uncertainty": [0.5, 1.5, 3.5], "requested_bins": 3,
}  # fmt: skip


def table_of(**changed):
    return BinTable(**STORED | changed)


def test_a_table_is_rebuilt_from_stored_values():
    table = table_of()
    assert (table.n_bins, table.n_samples, table.edges.dtype) == (3, 40, np.float32)
    np.testing.assert_allclose(table.weights, [0.25, 0.5, 0.25])
    np.testing.assert_allclose(table.hit_rates, [1.0, 0.75, 0.4])
    odds, base = np.array([0.95 / 0.05, 0.75 / 0.25, 0.42 / 0.58]), 0.725 / 0.275
    np.testing.assert_allclose(table.odds_ratios, np.maximum(odds / base, base / odds))
    assert np.isnan(table_of(counts=[10, 0, 10], hits=[10, 0, 4]).hit_rates[1])


def test_interpolation_is_linear_between_means_and_constant_beyond():
    table = table_of(lookup="interpolated", monotone=True)
    found = table.look_up(np.float32([0.0, 0.5, 1.0, 1.5, 2.5, 3.5, 99.0]))
    np.testing.assert_allclose(found.probability, [0.95, 0.95, 0.85, 0.75, 0.585, 0.42, 0.42])
    assert found.bin.tolist() == [0, 0, 0, 1, 2, 2, 2]


def test_intervals_are_widened_to_hold_the_probability():
    narrow = {"lower": [0.9, 0.7, 0.4], "upper": [0.96, 0.8, 0.5], "monotone": True}
    found = table_of(lookup="interpolated", **narrow).look_up(np.float32([0.5, 1.0, 2.5]))
    np.testing.assert_allclose(found.lower, [0.9, 0.85, 0.4])
    np.testing.assert_allclose(found.upper, [0.96, 0.96, 0.585])
    table = table_of(lower=[0.96, 0.7, 0.2], upper=[1.0, 0.74, 0.7])
    for _ in range(2):  # what is kept of the first time is what the second is given
        found = table.look_up(np.float32([0.5, 1.5, 2.5]))
        assert found.lower.tolist() == [0.95, 0.7, 0.2]
        assert found.upper.tolist() == [1.0, 0.75, 0.7]


@pytest.mark.parametrize("lookup", ["step", "interpolated"])
def test_what_is_looked_up_is_a_finite_value_in_float32(lookup):
    table = table_of(lookup=lookup)
    beside = 1.0 + 1e-12  # in float32 on the edge, which belongs to the bin before it
    found, expected = table.look_up([beside]), table.look_up(np.float32([1.0]))
    assert found.bin.tolist() == [0]
    assert found.probability.tolist() == expected.probability.tolist()
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="row 0 holds"):
            table.look_up(np.float32([value]))


@pytest.mark.parametrize(("change", "rule"), [
    ({"edges": [-np.inf, 2.0, 1.0, np.inf]}, "ascend strictly"),
    ({"edges": [-np.inf, 1.0, 1.0, np.inf]}, "ascend strictly"),
    ({"edges": [0.0, 1.0, 2.0, np.inf]}, "from -inf to inf"),
    ({"counts": [1, 2]}, "counts must have one value per bin, 3"), ({"upper": [1.0]}, "upper must"),
    ({"lookup": "interpolated", "mean_uncertainty": [0.5, 0.5, 1.0]}, "must ascend"),
    ({"lookup": "nearest"}, "lookup must be"),
])  # fmt: skip
def test_a_table_that_contradicts_itself_is_refused(change, rule):
    with pytest.raises(ValueError, match=rule):
        table_of(**change)
