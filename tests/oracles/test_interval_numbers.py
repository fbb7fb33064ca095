"""A published number, and scipy's own intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import binomial_counts
from scipy import stats

from howsure.statistics.bins.intervals import IntervalOptions, binomial_interval
from howsure.statistics.bins.prior import BetaPrior

PRIOR = BetaPrior(0.8, 1.0)


def bounds(method, hits, counts, level):
    options = IntervalOptions(method, level)
    return binomial_interval(np.asarray(hits), np.asarray(counts), PRIOR, options)


def test_the_papers_hoeffding_bound():
    """Oberman et al., 6.1: n = 2500, p = .9983, delta = .005; the formula gives .96368."""
    # 2500 * .9983 is no whole number of hits: the same rate at the same n, by linearity in p.
    lower, _ = bounds("hoeffding", [2500], [2500], 0.995)
    assert lower[0] - (1 - 0.9983) == pytest.approx(0.96368, abs=5e-6)


@pytest.mark.parametrize(("method", "name"), [("clopper_pearson", "exact"), ("wilson", "wilson")])
@given(sample=binomial_counts(max_bins=3), level=st.sampled_from([0.5, 0.9, 0.95, 0.995]))
def test_scipy_agrees(method, name, sample, level):
    hits, counts = sample
    lower, upper = bounds(method, hits, counts, level)
    for i, (k, n) in enumerate(zip(hits, counts, strict=True)):
        expected = stats.binomtest(int(k), int(n)).proportion_ci(level, method=name)
        assert (lower[i], upper[i]) == pytest.approx((expected.low, expected.high), abs=1e-10)


@given(sample=binomial_counts(max_bins=3), level=st.sampled_from([0.5, 0.9, 0.95, 0.995]))
def test_credible_intervals_are_quantiles_of_their_posteriors(sample, level):
    hits, counts = sample
    posterior = stats.beta(hits + 0.8, counts - hits + 0.2)
    found = bounds("beta", hits, counts, level)
    np.testing.assert_allclose(found, posterior.interval(level), rtol=1e-8)
    lower, upper = bounds("jeffreys", hits, counts, level)
    expected = stats.beta(hits + 0.5, counts - hits + 0.5).interval(level)
    inside = (hits > 0) & (hits < counts)
    np.testing.assert_allclose(lower[inside], expected[0][inside], rtol=1e-8)
    np.testing.assert_allclose(upper[inside], expected[1][inside], rtol=1e-8)
    assert (lower[hits == 0] == 0).all()
    assert (upper[hits == counts] == 1).all()
