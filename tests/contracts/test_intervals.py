"""Laws that every interval keeps."""

import numpy as np
import pytest
from core_strategies import binomial_counts, quick
from hypothesis import given
from hypothesis import strategies as st

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.bins.intervals import INTERVALS, IntervalOptions, binomial_interval
from howsure.statistics.bins.prior import BetaPrior, posterior_mean

METHODS = pytest.mark.parametrize("method", sorted(INTERVALS))
LEVELS = st.sampled_from([0.5, 0.8, 0.95, 0.999, 1 - 1e-9])


def bounds(method, hits, counts, level, prior=None):
    options = IntervalOptions(method, level)
    return binomial_interval(np.asarray(hits), np.asarray(counts), prior or BetaPrior(0.5), options)


@METHODS
@quick
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
def test_it_narrows_with_more_samples_at_the_same_rate(method):
    counts = 10 * 2 ** np.arange(12)
    lower, upper = bounds(method, counts * 4 // 5, counts, 0.95)
    assert (np.diff(upper - lower) < 0).all()


@METHODS
@quick
@given(binomial_counts())
def test_it_widens_with_its_level(method, sample):
    narrow, wide = (bounds(method, *sample, level) for level in (0.8, 0.99))
    assert (wide[0] <= narrow[0]).all()
    assert (wide[1] >= narrow[1]).all()


@METHODS
@quick
@given(binomial_counts(), LEVELS)
def test_hits_and_misses_mirror_each_other(method, sample, level):
    hits, counts = sample
    lower, upper = bounds(method, hits, counts, level, BetaPrior(0.7))
    mirrored_lower, mirrored_upper = bounds(method, counts - hits, counts, level, BetaPrior(0.3))
    np.testing.assert_allclose(mirrored_lower, 1 - upper, atol=1e-12)
    np.testing.assert_allclose(mirrored_upper, 1 - lower, atol=1e-12)


@METHODS
def test_an_empty_bin_is_wide_open_or_the_prior(method):
    lower, upper = bounds(method, [0], [0], 0.95)
    assert 0 <= lower[0] < 0.01
    assert 0.99 < upper[0] <= 1


@METHODS
def test_extreme_priors_give_finite_bounds(method):
    lower, upper = bounds(method, [0, 5], [5, 5], 0.95, BetaPrior(1e-6, 1e-3))
    assert np.isfinite([lower, upper]).all()


@pytest.mark.parametrize("method", ["clopper_pearson", "hoeffding"])
@pytest.mark.parametrize(("n_samples", "n_bins"), [(500, 10), (200, 20)])
def test_bins_fitted_on_the_same_data_are_covered(method, n_samples, n_bins):
    """P(hit | U) = 1 - .9 U with U uniform: a bin's truth is its value at the bin's middle."""
    rng = np.random.default_rng(20)
    options = IntervalOptions(method, 0.9)
    covered = []
    for _ in range(300):
        uncertainty = rng.random(n_samples).astype(np.float32)
        hits = rng.random(n_samples) < 1 - 0.9 * uncertainty
        table = fit_bin_table(uncertainty, hits, n_bins=n_bins, interval=options)
        ends = np.clip(table.edges.astype(np.float64), 0, 1)
        truth = 1 - 0.9 * (ends[1:] + ends[:-1]) / 2
        covered.append((table.lower <= truth) & (truth <= table.upper))
    assert np.mean(covered) >= 0.9


@pytest.mark.parametrize("method", ["clopper_pearson", "hoeffding"])
def test_simultaneous_intervals_cover_all_bins_at_once(method):
    rng = np.random.default_rng(21)
    options = IntervalOptions(method, 0.9, simultaneous=True)
    covered = []
    for _ in range(300):
        uncertainty = rng.random(400).astype(np.float32)
        hits = rng.random(400) < 1 - 0.9 * uncertainty
        table = fit_bin_table(uncertainty, hits, n_bins=8, interval=options)
        ends = np.clip(table.edges.astype(np.float64), 0, 1)
        truth = 1 - 0.9 * (ends[1:] + ends[:-1]) / 2
        covered.append(((table.lower <= truth) & (truth <= table.upper)).all())
    assert np.mean(covered) >= 0.9
