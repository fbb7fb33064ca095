"""Laws that every interval keeps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import binomial_counts

from howsure.statistics.bins.intervals import INTERVALS, IntervalOptions, binomial_interval
from howsure.statistics.bins.prior import BetaPrior, posterior_mean

METHODS = pytest.mark.parametrize("method", sorted(INTERVALS))
LEVELS = st.sampled_from([0.5, 0.8, 0.95, 0.999, 1 - 1e-9])


def bounds(method, hits, counts, level, prior=None):
    hits, counts, prior = np.asarray(hits), np.asarray(counts), prior or BetaPrior(0.5)
    return binomial_interval(hits, counts, prior, IntervalOptions(method, level))


@METHODS
@given(binomial_counts(), LEVELS)
def test_it_holds_its_estimate_within_the_unit_interval(method, sample, level):
    hits, counts = sample
    prior = BetaPrior(0.5)
    lower, upper = bounds(method, hits, counts, level, prior)
    estimate = posterior_mean(hits, counts, prior) if method == "beta" else hits / counts
    assert ((lower >= 0) & (upper <= 1)).all()
    assert (lower <= estimate + 1e-12).all()
    assert (estimate - 1e-12 <= upper).all()
    assert lower.dtype == upper.dtype == np.float64


@METHODS
@given(binomial_counts(), LEVELS)
def test_hits_and_misses_mirror_each_other(method, sample, level):
    hits, counts = sample
    lower, upper = bounds(method, hits, counts, level, BetaPrior(0.7))
    mirrored_lower, mirrored_upper = bounds(method, counts - hits, counts, level, BetaPrior(0.3))
    np.testing.assert_allclose(mirrored_lower, 1 - upper, atol=1e-12)
    np.testing.assert_allclose(mirrored_upper, 1 - lower, atol=1e-12)


@METHODS
def test_an_empty_bin_is_wide_open_and_extreme_priors_give_finite_bounds(method):
    lower, upper = bounds(method, [0], [0], 0.95)
    assert 0 <= lower[0] < 0.01
    assert 0.99 < upper[0] <= 1
    found = bounds(method, [0, 5], [5, 5], 0.95, BetaPrior(1e-6, 1e-3))
    assert np.isfinite(found).all()
