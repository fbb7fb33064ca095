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


def gaps(judged, groups):
    """Count and absolute gap of each group, sample by sample."""
    found = {}
    for group, hit, probability in zip(groups, judged.hits, judged.probability, strict=True):
        count, total = found.get(group, (0, 0.0))
        found[group] = (count + 1, total + float(hit) - probability)
    return [(count, abs(total) / count) for count, total in found.values()]


@given(judged_by_table())
def test_ece_and_mce_by_hand(judged):
    by_bin = gaps(judged, judged.bins.tolist())
    expected = sum(count * gap for count, gap in by_bin) / judged.n_samples
    assert SCORES["ece"].compute(judged) == pytest.approx(expected, abs=1e-12)
    assert SCORES["mce"].compute(judged) == pytest.approx(max(g for _, g in by_bin), abs=1e-12)


@given(judged_without_bins(), st.integers(1, 20))
def test_equal_range_by_hand(judged, n_bins):
    edges = [i / n_bins for i in range(1, n_bins)]
    groups = [sum(edge < p for edge in edges) for p in judged.probability.tolist()]
    by_bin = gaps(judged, groups)
    expected = sum(count * gap for count, gap in by_bin) / judged.n_samples
    assert equal_range_ece(judged, n_bins) == pytest.approx(expected, abs=1e-12)
    assert equal_range_mce(judged, n_bins) == pytest.approx(max(g for _, g in by_bin), abs=1e-12)


any_judged = judged_by_table() | judged_without_bins()


def judged_of(probability, hits):
    probability = np.asarray(probability, dtype=np.float64)
    return Predictions(
        uncertainty=-probability, hits=np.asarray(hits, bool), probability=probability
    )


def drawn(n_samples, *, seed=0, shift=0.0, power=0.3):
    """Distinct confidences whose truth is ``shift`` below them."""
    rng = np.random.default_rng(seed)
    probability = rng.random(n_samples) ** power
    return judged_of(probability, rng.random(n_samples) < probability - shift)


def test_a_score_of_bins_wants_bins():
    with pytest.raises(ValueError, match="bins must be given"):
        ece(judged_of([0.5], [1]))


class TestEqualMass:
    @pytest.mark.parametrize("n_samples", [150, 151, 1000])
    def test_bins_differ_by_one_sample_at_most(self, n_samples):
        cuts = equal_mass_cuts(drawn(n_samples).by_confidence, 15)
        counts = np.diff(cuts)
        assert len(counts) == 15
        assert set(counts) <= {n_samples // 15, -(-n_samples // 15)}

    def test_is_that_of_scikit_learn(self):
        """Its quantile bins, closed on the left: the same where no edge lies on a sample."""
        judged = drawn(1500, shift=0.1)
        rates, means = calibration_curve(
            judged.hits, judged.probability, n_bins=15, strategy="quantile"
        )
        expected = np.abs(rates - means).mean()
        # Its edges interpolate quantiles of n - 1 gaps: bins may differ by a sample.
        assert SCORES["ece_equal_mass"].compute(judged) == pytest.approx(expected, rel=0.02)

    @given(any_judged)
    def test_equal_probabilities_share_a_bin(self, judged):
        for cuts in (
            equal_mass_cuts(judged.by_confidence, 15),
            adaptive_cuts(judged.by_confidence),
        ):
            ranked = np.sort(judged.probability)[::-1]
            assert cuts[0] == 0
            assert cuts[-1] == judged.n_samples
            assert (np.diff(cuts) > 0).all()
            assert (ranked[cuts[1:-1] - 1] > ranked[cuts[1:-1]]).all()


class TestDebiased:
    def test_of_a_calibrated_model_the_square_is_none_on_average(self):
        """The plug-in square is the sum over bins of w p (1 - p) / n; the debiased is 0."""
        rng = np.random.default_rng(3)
        probability = np.repeat(np.linspace(0.3, 0.95, 15), 40)
        plain, debiased = [], []
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
        assert abs(np.mean(debiased)) < 4 * error
        assert np.mean(plain) > 20 * error

    def test_single_samples_define_nothing(self):
        assert SCORES["l2_debiased"].compute(judged_of([0.9, 0.8], [1, 0])) is None


def by_the_authors_steps(probability, hits, z=1.645):
    """Their tool, a sample at a time, but for taking from each bin by its own size."""
    ranked = sorted(zip(probability.tolist(), hits.tolist(), strict=True), reverse=True)
    n_samples = len(ranked)
    counts, high, low = [0], [ranked[0][0]], [ranked[0][0]]
    target = np.inf
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


class TestAdaptive:
    @pytest.mark.parametrize("n_samples", [10, 60, 1000])
    @pytest.mark.parametrize("power", [0.05, 0.3, 1.0])
    def test_is_that_of_the_authors_steps(self, n_samples, power):
        judged = drawn(n_samples, power=power, shift=0.05)
        cuts, expected, largest = by_the_authors_steps(judged.probability, judged.hits)
        np.testing.assert_array_equal(adaptive_cuts(judged.by_confidence), cuts)
        assert SCORES["aece"].compute(judged) == pytest.approx(expected, rel=1e-9)
        assert SCORES["amce"].compute(judged) == pytest.approx(largest, rel=1e-9)

    def test_is_that_of_the_authors_steps_where_little_range_is_left(self):
        probability = np.linspace(0.9, 1.0, 20_000)
        judged = judged_of(probability, np.arange(20_000) % 20 > 0)
        cuts, _, _ = by_the_authors_steps(judged.probability, judged.hits)
        np.testing.assert_array_equal(adaptive_cuts(judged.by_confidence), cuts)

    @pytest.mark.parametrize("gap", [1e-6, 1e-14])
    def test_a_last_bin_of_next_to_no_width_takes_all(self, gap):
        """Its target has no bounds: more than there are samples, more than 64 bits can count."""
        counts = [3500, 3500, 3000, 3000, 30, 30]
        probability = np.repeat([0.95, 0.94, 0.85, 0.8, 0.5, 0.5 - gap], counts)
        order = rank_samples(-probability, np.ones(len(probability), dtype=np.bool_))
        np.testing.assert_array_equal(adaptive_cuts(order), [0, len(probability)])

    def test_one_value_is_one_bin(self):
        judged = judged_of(np.full(500, 0.7), np.arange(500) % 2 == 0)
        np.testing.assert_array_equal(adaptive_cuts(judged.by_confidence), [0, 500])
        assert SCORES["aece"].compute(judged) == pytest.approx(0.2)


class TestSmooth:
    @pytest.mark.parametrize("shift", [0.0, 0.1, 0.4])
    @pytest.mark.parametrize("n_samples", [50, 1000])
    def test_is_the_fixed_point_of_the_integral(self, shift, n_samples):
        """By summing each sample's reflected Gaussian, on a fine grid."""
        judged = drawn(n_samples, seed=2, shift=shift)
        width = SCORES["smooth_ece"].compute(judged)
        middle = (np.arange(4000) + 0.5) / 4000
        images = [
            sign * judged.probability + 2.0 * turn for turn in range(-2, 3) for sign in (-1, 1)
        ]
        residuals = judged.hits - judged.probability
        smoothed = sum(
            norm.pdf(middle[:, np.newaxis], loc=centre, scale=width) @ residuals
            for centre in images
        )
        integral = np.abs(smoothed).mean() / n_samples
        assert integral == pytest.approx(width, rel=2e-3, abs=2e-4)

    @pytest.mark.parametrize(("said", "hit"), [(0.0, True), (1.0, False)])
    def test_the_worst_is_one(self, said, hit):
        assert SCORES["smooth_ece"].compute(judged_of([said], [hit])) == pytest.approx(1.0)
