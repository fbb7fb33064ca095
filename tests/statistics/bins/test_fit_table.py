"""Fitted tables, and the choice of the number of bins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.stats import sem

from howsure.statistics.bins.fit import candidate_bins, choose_bins, fit_bin_table

RNG = np.random.default_rng(11)
UNCERTAINTY = RNG.exponential(size=2000).astype(np.float32)
HITS = RNG.random(2000) < np.exp(-UNCERTAINTY / 3)


def test_counts_and_hits_are_those_of_a_plain_loop():
    table = fit_bin_table(UNCERTAINTY, HITS, n_bins=8)
    for i in range(8):
        inside = (table.edges[i] < UNCERTAINTY) & (table.edges[i + 1] >= UNCERTAINTY)
        assert (table.counts[i], table.hits[i]) == (inside.sum(), HITS[inside].sum())
        assert table.mean_uncertainty[i] == pytest.approx(UNCERTAINTY[inside].mean(), rel=1e-6)
    assert table.prior.accuracy == HITS.mean()
    np.testing.assert_allclose(table.probability, (table.hits + HITS.mean()) / (table.counts + 1.0))


def test_pooled_bins_keep_their_samples_and_mean():
    uncertainty = np.arange(40, dtype=np.float32)
    hits = np.repeat([True, False, True, False], 10)
    table = fit_bin_table(uncertainty, hits, n_bins=4, monotone=True)
    assert table.counts.tolist() == [10, 20, 10]
    assert table.hits.tolist() == [10, 10, 0]
    assert table.edges.tolist() == [-np.inf, 9.5, 29.5, np.inf]
    assert table.mean_uncertainty.tolist() == [4.5, 19.5, 34.5]
    assert (table.requested_bins, table.n_bins) == (4, 3)
    table = fit_bin_table(UNCERTAINTY, ~HITS, n_bins=20, lookup="interpolated")
    assert (table.monotone, table.n_bins) == (True, 1), "interpolation implies pooling"


@pytest.mark.parametrize(("values", "n_hits", "n_bins", "rule"), [
    ([], 0, 2, "at least one sample"), ([1.0, np.nan], 2, 2, "row 1 holds nan"),
    ([1.0], 1, 0, "n_bins must be at least 1"), ([1.0], 2, 1, r"hits must have shape \(1,\)"),
])  # fmt: skip
def test_invalid_samples_are_refused(values, n_hits, n_bins, rule):
    with pytest.raises(ValueError, match=rule):
        fit_bin_table(np.array(values, dtype=np.float32), np.ones(n_hits, bool), n_bins=n_bins)


def test_a_candidate_leaves_25_samples_to_a_bin():
    numbers = (1, 2, 5, 10, 15, 20, 30, 50, 75, 100)
    for n_samples, n_tried in ((1, 1), (49, 1), (50, 2), (2499, 9), (2500, 10)):
        assert candidate_bins(n_samples) == numbers[:n_tried]


@given(npst.arrays(np.float64, (4, 6), elements=st.floats(0.1, 1.0)))
def test_the_rule_by_hand(nll):
    n_bins = (1, 2, 5, 10)
    more = nll - min(nll, key=np.mean)
    allowed = more.mean(axis=1) <= sem(more, axis=1)  # for the best one, 0 <= 0
    assert choose_bins(n_bins, nll) == n_bins[allowed.argmax()]
    # An infinite candidate is passed over; without folds the fewest bins are chosen.
    infinite = np.array([[np.inf, 0.1, 0.1], [0.5, 0.5, 0.5]])
    assert choose_bins((1, 2), infinite) == 2
    assert choose_bins((1, 2), np.full((2, 3), np.inf)) == 1
    assert choose_bins((1, 2), np.empty((2, 0))) == 1
