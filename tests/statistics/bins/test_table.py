import numpy as np
import pytest

from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable

STORED = {
    "edges": [-np.inf, 1.0, 2.0, np.inf],
    "counts": [10, 20, 10],
    "hits": [10, 15, 4],
    "prior": BetaPrior(0.725, 1.0),
    "probability": [0.95, 0.75, 0.42],
    "lower": [0.7, 0.5, 0.2],
    "upper": [1.0, 0.9, 0.7],
    "mean_uncertainty": [0.5, 1.5, 3.5],
    "requested_bins": 3,
}


def test_a_table_is_rebuilt_from_stored_values():
    table = BinTable(**STORED)
    assert (table.n_bins, table.n_samples) == (3, 40)
    assert table.edges.dtype == np.float32
    np.testing.assert_allclose(table.weights, [0.25, 0.5, 0.25])
    np.testing.assert_allclose(table.hit_rates, [1.0, 0.75, 0.4])
    odds = np.array([0.95 / 0.05, 0.75 / 0.25, 0.58 / 0.42])
    accuracy_odds = 0.725 / 0.275
    np.testing.assert_allclose(
        table.odds_ratios,
        [odds[0] / accuracy_odds, odds[1] / accuracy_odds, accuracy_odds * odds[2]],
    )


def test_interpolation_is_linear_between_means_and_constant_beyond():
    table = BinTable(**STORED, lookup="interpolated", monotone=True)
    values = np.array([0.0, 0.5, 1.0, 1.5, 2.5, 3.5, 99.0], dtype=np.float32)
    found = table.look_up(values)
    np.testing.assert_allclose(found.probability, [0.95, 0.95, 0.85, 0.75, 0.585, 0.42, 0.42])
    assert found.bin.tolist() == [0, 0, 0, 1, 2, 2, 2]


def test_the_interval_of_an_interpolated_value_is_its_bins_and_holds_it():
    narrow = STORED | {"lower": [0.9, 0.7, 0.4], "upper": [0.96, 0.8, 0.5]}
    table = BinTable(**narrow, lookup="interpolated", monotone=True)
    found = table.look_up(np.array([0.5, 1.0, 2.5], dtype=np.float32))
    np.testing.assert_allclose(found.lower, [0.9, 0.85, 0.4])
    np.testing.assert_allclose(found.upper, [0.96, 0.96, 0.585])


def test_the_interval_of_a_step_is_widened_to_hold_the_probability():
    table = BinTable(**STORED | {"lower": [0.96, 0.7, 0.2], "upper": [1.0, 0.74, 0.7]})
    for _ in range(2):  # what is kept of the first time is what the second is given
        found = table.look_up(np.array([0.5, 1.5, 2.5], dtype=np.float32))
        assert found.lower.tolist() == [0.95, 0.7, 0.2]
        assert found.upper.tolist() == [1.0, 0.75, 0.7]


@pytest.mark.parametrize("lookup", ["step", "interpolated"])
def test_what_is_looked_up_is_the_value_in_float32(lookup):
    table = BinTable(**STORED, lookup=lookup)
    beside = 1.0 + 1e-12  # in float32 on the edge, which belongs to the bin before it
    found, expected = table.look_up([beside]), table.look_up(np.float32([1.0]))
    assert found.bin.tolist() == [0]
    assert found.probability.tolist() == expected.probability.tolist()


def test_an_empty_bin_has_no_hit_rate():
    table = BinTable(**STORED | {"counts": [10, 0, 10], "hits": [10, 0, 4]})
    assert np.isnan(table.hit_rates[1])


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("lookup", ["step", "interpolated"])
def test_a_value_that_is_not_finite_is_refused(value, lookup):
    with pytest.raises(ValueError, match="row 0 holds"):
        BinTable(**STORED, lookup=lookup).look_up(np.array([value], dtype=np.float32))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"edges": [-np.inf, 2.0, 1.0, np.inf]}, "ascend strictly"),
        ({"edges": [-np.inf, 1.0, 1.0, np.inf]}, "ascend strictly"),
        ({"edges": [0.0, 1.0, 2.0, np.inf]}, "from -inf to inf"),
        ({"counts": [1, 2]}, "counts must have one value per bin, 3"),
        ({"upper": [1.0]}, "upper must have one value per bin, 3"),
        ({"lookup": "interpolated", "mean_uncertainty": [0.5, 0.5, 1.0]}, "must ascend"),
        ({"lookup": "nearest"}, "lookup must be"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(change, rule):
    with pytest.raises(ValueError, match=rule):
        BinTable(**STORED | change)
