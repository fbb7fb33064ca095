"""Calibration errors over the table's bins and over others, each against a slow second making."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import judged_by_table, judged_without_bins
from scipy.stats import norm
from sklearn.calibration import calibration_curve

from howsure.statistics.ranking import rank_samples
from howsure.statistics.scores import SCORES, Predictions
from howsure.statistics.scores.binned_error import (
    adaptive_cuts,
    ece,
    equal_mass_cuts,
    equal_range_ece,
    equal_range_mce,
    gaps_between,
)


def assert_errors(errors, judged, groups):
    """Compare a mean and a largest error with those of the groups."""
    rows = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    gaps = [abs(np.mean(judged.hits[own] - judged.probability[own])) for own in rows]
    expected = np.average(gaps, weights=[len(own) for own in rows]), max(gaps)
    assert errors == pytest.approx(expected, abs=1e-12)


@given(judged_by_table(), judged_without_bins(), st.integers(1, 20))
def test_errors_over_bins_and_equal_ranges_by_hand(judged, unbinned, n_bins):
    errors = SCORES["ece"].compute(judged), SCORES["mce"].compute(judged)
    assert_errors(errors, judged, judged.bins)
    edges = np.array([i / n_bins for i in range(1, n_bins)])
    groups = (edges < unbinned.probability[:, np.newaxis]).sum(axis=1)
    errors = equal_range_ece(unbinned, n_bins), equal_range_mce(unbinned, n_bins)
    assert_errors(errors, unbinned, groups)


any_judged = judged_by_table() | judged_without_bins()


def judged_of(probability, hits):
    probability, hits = np.asarray(probability, dtype=np.float64), np.asarray(hits, bool)
    return Predictions(uncertainty=-probability, hits=hits, probability=probability)


def drawn(n_samples, *, seed=0, shift=0.0, power=0.3):
    """Distinct confidences whose truth is ``shift`` below them."""
    rng = np.random.default_rng(seed)
    probability = rng.random(n_samples) ** power
    return judged_of(probability, rng.random(n_samples) < probability - shift)


@pytest.mark.parametrize("n_samples", [150, 151, 1000])
def test_equal_mass_bins_differ_by_one_sample_at_most(n_samples):
    cuts = equal_mass_cuts(drawn(n_samples).by_confidence, 15)
    counts = np.diff(cuts)
    assert len(counts) == 15
    assert set(counts) <= {n_samples // 15, -(-n_samples // 15)}


def test_equal_mass_is_that_of_scikit_learn():
    """Its quantile bins, closed on the left: the same where no edge lies on a sample."""
    judged = drawn(1500, shift=0.1)
    bins = {"n_bins": 15, "strategy": "quantile"}
    rates, means = calibration_curve(judged.hits, judged.probability, **bins)
    expected = np.abs(rates - means).mean()
    # Its edges interpolate quantiles of n - 1 gaps: bins may differ by a sample.
    assert SCORES["ece_equal_mass"].compute(judged) == pytest.approx(expected, rel=0.02)


@given(any_judged)
def test_equal_probabilities_share_a_bin(judged):
    for cuts in (equal_mass_cuts(judged.by_confidence, 15), adaptive_cuts(judged.by_confidence)):
        ranked = np.sort(judged.probability)[::-1]
        assert cuts[0] == 0
        assert cuts[-1] == judged.n_samples
        assert (np.diff(cuts) > 0).all()
        assert (ranked[cuts[1:-1] - 1] > ranked[cuts[1:-1]]).all()


def test_the_debiased_square():
    """Of a calibrated model it is 0 on average; the plain one is the sum of w p (1 - p) / n."""
    rng, plain, debiased = np.random.default_rng(3), [], []
    probability = np.repeat(np.linspace(0.3, 0.95, 15), 40)
    for _ in range(400):
        judged = judged_of(probability, rng.random(600) < probability)
        order = judged.by_confidence
        weights, gaps = gaps_between(order, equal_mass_cuts(order, 15))
        plain.append(weights @ gaps**2)
        rates = 1.0 - np.diff(order.errors_before[::40]) / 40
        debiased.append(weights @ (gaps**2 - rates * (1 - rates) / 39))
        expected = np.sqrt(max(debiased[-1], 0.0))
        assert SCORES["l2_debiased"].compute(judged) == pytest.approx(expected, abs=1e-12)
    error = np.std(debiased) / 20
    assert abs(np.mean(debiased)) < 4 * error < np.mean(plain) / 5


def by_the_authors_steps(probability, hits, z=1.645):
    """Their tool, a sample at a time, but for taking from each bin by its own size."""
    ranked = sorted(zip(probability.tolist(), hits.tolist(), strict=True), reverse=True)
    n_samples, target = len(ranked), np.inf
    counts, high, low = [0], [ranked[0][0]], [ranked[0][0]]
    for i, (confidence, _) in enumerate(ranked):
        if counts[-1] > target and n_samples - i > 40 and low[-1] - ranked[-1][0] > 0.05:
            counts.append(0)
            high.append(confidence)
            low.append(confidence)
        counts[-1] += 1
        low[-1] = confidence
        width = high[-1] - low[-1]
        target = np.inf if width == 0 else 0.25 * (z / width) ** 2
    if target > counts[-1]:
        missing = target - counts[-1]
        for i in range(len(counts) - 1):
            taken = int(missing * counts[i] / n_samples)
            counts[i] -= taken
            counts[-1] += taken
    cuts = np.cumsum([0, *counts])
    bins = [ranked[a:b] for a, b in itertools.pairwise(cuts)]
    gaps = [abs(np.mean([c for c, _ in b]) - np.mean([h for _, h in b])) for b in bins]
    return cuts, np.dot([len(b) for b in bins], gaps) / n_samples, max(gaps)


LITTLE_RANGE = judged_of(np.linspace(0.9, 1.0, 20_000), np.arange(20_000) % 20 > 0)


@pytest.mark.parametrize("judged", [
    *(drawn(n, power=power, shift=0.05) for n, power in (
        (10, 0.3), (60, 0.05), (60, 1.0), (1000, 0.05), (1000, 0.3), (1000, 1.0))),
    LITTLE_RANGE,
])  # fmt: skip
def test_adaptive_bins_are_those_of_the_authors_steps(judged):
    cuts, expected, largest = by_the_authors_steps(judged.probability, judged.hits)
    np.testing.assert_array_equal(adaptive_cuts(judged.by_confidence), cuts)
    assert SCORES["aece"].compute(judged) == pytest.approx(expected, rel=1e-9)
    assert SCORES["amce"].compute(judged) == pytest.approx(largest, rel=1e-9)


@pytest.mark.parametrize("gap", [1e-6, 1e-14])
def test_a_last_bin_of_next_to_no_width_takes_all(gap):
    """Its target has no bounds: more than there are samples, more than 64 bits can count."""
    counts = [3500, 3500, 3000, 3000, 30, 30]
    probability = np.repeat([0.95, 0.94, 0.85, 0.8, 0.5, 0.5 - gap], counts)
    order = rank_samples(-probability, np.ones(len(probability), dtype=np.bool_))
    np.testing.assert_array_equal(adaptive_cuts(order), [0, len(probability)])


@pytest.mark.parametrize(("n_samples", "shift"), [(50, 0.4), (50, 0.0), (1000, 0.1), (1000, 0.0)])
def test_smooth_is_the_fixed_point_of_the_integral(shift, n_samples):
    """By summing each sample's reflected Gaussian, on a fine grid."""
    judged = drawn(n_samples, seed=2, shift=shift)
    width = SCORES["smooth_ece"].compute(judged)
    middle = (np.arange(1000) + 0.5) / 1000
    images = [sign * judged.probability + 2.0 * turn for turn in range(-2, 3) for sign in (-1, 1)]
    densities = sum(norm.pdf(middle[:, np.newaxis], centre, width) for centre in images)
    smoothed = densities @ (judged.hits - judged.probability)
    integral = np.abs(smoothed).mean() / n_samples
    assert integral == pytest.approx(width, rel=2e-3, abs=2e-4)


def test_extremes():
    """Bins that were not given, bins of one sample, one value, and the worst answers."""
    with pytest.raises(ValueError, match="bins must be given"):
        ece(judged_of([0.5], [1]))
    assert SCORES["l2_debiased"].compute(judged_of([0.9, 0.8], [1, 0])) is None
    judged = judged_of(np.full(500, 0.7), np.arange(500) % 2 == 0)
    np.testing.assert_array_equal(adaptive_cuts(judged.by_confidence), [0, 500])
    assert SCORES["aece"].compute(judged) == pytest.approx(0.2)
    for said, hit in ((0.0, True), (1.0, False)):
        assert SCORES["smooth_ece"].compute(judged_of([said], [hit])) == pytest.approx(1.0)
