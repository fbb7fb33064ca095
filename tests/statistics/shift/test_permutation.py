"""Permutation tests against all deals one by one, and in simulation."""

from itertools import product
from math import comb

import numpy as np
import pytest

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.fit.cross_validation import predict_with_table
from howsure.statistics.scores import SCORES
from howsure.statistics.shift.permutation import ece_permutation_test, gap_permutation_test


def chance_of(is_as_far, hits, held, judged):
    """Return the chance of deals as far off: hits of both sets, samples held and judged by bin."""
    chance = 0.0
    for dealt in product(*(range(min(h, m) + 1) for h, m in zip(hits, judged, strict=True))):
        if ((hits - dealt) > held).any():
            continue
        bins = zip(hits, dealt, held, judged, strict=True)
        ways = [comb(h, d) * comb(n + m - h, m - d) / comb(n + m, m) for h, d, n, m in bins]
        chance += np.prod(ways) * is_as_far(np.array(dealt))
    return chance


def assert_near(found, chance):
    assert 0.01 < chance < 0.9
    assert found == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / 2000))


def test_permutation_p_value_is_that_of_all_deals():
    """Two bins of six, of which the fit held three each: every deal, by its probability."""
    uncertainty = np.float32([1, 2, 3, 7, 8, 9])
    table = fit_bin_table(uncertainty, np.array([1, 1, 1, 1, 0, 0], dtype=bool), n_bins=2)
    judged = predict_with_table(table, uncertainty, np.array([1, 0, 0, 0, 0, 1], dtype=bool))
    hits, observed = np.array([4, 2]), SCORES["ece"].compute(judged)

    def is_as_far(dealt):
        fitted = hits - dealt
        accuracy = fitted.sum() / 6 if 0 < fitted.sum() < 6 else (fitted.sum() + 0.5) / 7
        return np.abs(dealt / 3 - (fitted + accuracy) / 4).mean() >= observed - 1e-9

    found = ece_permutation_test(table, judged, rng=np.random.default_rng(0))
    assert_near(found, chance_of(is_as_far, hits, np.array([3, 3]), np.array([3, 3])))


def test_p_value_of_the_gap_is_that_of_all_deals():
    """Two bins, of which the fit held three and two: every deal, by its probability."""
    uncertainty = np.float32([1, 2, 3, 7, 8])
    table = fit_bin_table(uncertainty, np.array([1, 1, 1, 1, 0], dtype=bool), n_bins=2)
    others, right = np.float32([1, 2, 2, 3, 7, 8, 8]), np.array([0, 0, 1, 0, 0, 0, 1], dtype=bool)
    judged = predict_with_table(table, others, right)
    held, counts = table.counts, np.bincount(judged.bins)
    hits = table.hits + np.bincount(judged.bins[right], minlength=2)
    expected = (counts * hits / (held + counts)).sum()

    def is_as_far(dealt):
        return abs(dealt.sum() - expected) >= abs(2 - expected) - 1e-9

    found = gap_permutation_test(table, uncertainty, judged, rng=np.random.default_rng(0))
    assert_near(found, chance_of(is_as_far, hits, held, counts))


@pytest.mark.parametrize(("lookup", "drop"), [
    ("step", 0.0), ("interpolated", 0.1), ("smooth", 0.0), ("smooth", 0.1),
])  # fmt: skip
def test_the_gap_shows_that_answers_are_worse_everywhere(lookup, drop):
    """The error in either direction shows it less often; a skewed set like the fitted one does not.

    False alarms are binomial with 100 tries at .05; 13 is beyond 3.5 deviations.
    """
    by_gap, by_error = 0, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        fitted, skewed = rng.random((2, 600)).astype(np.float32)
        skewed **= 1.0 if drop else 1.3
        hits, right = rng.random((2, 600)) < 0.95 - 0.6 * np.stack([fitted, skewed + drop / 0.6])
        table = fit_bin_table(fitted, hits, n_bins=8, lookup=lookup)
        judged = predict_with_table(table, skewed, right)
        by_error += ece_permutation_test(table, judged, rng=rng, resamples=500) < 0.01
        p_value = gap_permutation_test(table, fitted, judged, rng=rng, resamples=500)
        by_gap += p_value < (0.01 if drop else 0.05)
    assert (by_gap >= 80 and by_error <= 65) if drop else by_gap <= 13


# Two errors in all: where the band is too narrow.
ERRORS = [(400, 1 / 4, "step"), (2000, 1 / 500, "step"), (400, 1 / 4, "interpolated")]


@pytest.mark.parametrize(("n_samples", "largest", "lookup"), ERRORS)
def test_permutation_test_rejects_like_sets_as_rarely_as_said(n_samples, largest, lookup):
    rng, calls = np.random.default_rng(1), 0

    def drawn():
        uncertainty = rng.random(n_samples).astype(np.float32)
        return uncertainty, rng.random(n_samples) >= largest * uncertainty

    for _ in range(200):
        table = fit_bin_table(*drawn(), n_bins=5, lookup=lookup)
        judged = predict_with_table(table, *drawn())
        calls += ece_permutation_test(table, judged, rng=rng) < 0.05

    assert calls / 200 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


@pytest.mark.parametrize("lookup", ["step", "interpolated"])
def test_hits_that_can_be_dealt_in_one_way_have_a_p_value_of_one(lookup):
    """Also where an interpolated table serves something else than its bins' own probabilities."""
    uncertainty, hits = np.arange(40, dtype=np.float32), np.arange(40) < 20
    table = fit_bin_table(uncertainty, hits, n_bins=2, lookup=lookup)
    judged = predict_with_table(table, uncertainty[15:25], hits[15:25])

    assert ece_permutation_test(table, judged, rng=np.random.default_rng(0)) == 1.0
