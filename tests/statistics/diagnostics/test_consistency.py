"""Consistency bands, against labels drawn and tables fitted one by one, and in simulation."""

from dataclasses import replace
from itertools import product
from math import comb

import numpy as np
import pytest

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.diagnostics.consistency import (
    confidence_band,
    cross_validated_band,
    ece_permutation_test,
    evaluation_band,
    gap_permutation_test,
)
from howsure.statistics.fit.cross_validation import predict_with_table
from howsure.statistics.scores import SCORES, Predictions

N_FITTED, N_JUDGED, BINS = 600, 500, 6


def ece(table, uncertainty, hits):
    return SCORES["ece_15"].compute(predict_with_table(table, uncertainty, hits))


def drawn_set(rng, n_samples):
    """Samples whose uncertainty is the chance of an error."""
    uncertainty = (rng.random(n_samples) ** 2).astype(np.float32)
    return uncertainty, rng.random(n_samples) >= uncertainty


@pytest.fixture(scope="module", params=["step", "interpolated", "smooth"])
def sets(request):
    rng = np.random.default_rng(5)
    fitted, judged = drawn_set(rng, N_FITTED), drawn_set(rng, N_JUDGED)
    table = fit_bin_table(*fitted, n_bins=BINS, prior_strength=2.0, lookup=request.param)
    return table, fitted, judged


def assert_quantiles(band, drawn, *, median, upper):
    """Compare a band with scores that were drawn one by one, within these relative errors."""
    assert band.median == pytest.approx(np.median(drawn), rel=median)
    assert band.upper == pytest.approx(np.quantile(drawn, 0.99), rel=upper)


def test_evaluation_band_is_that_of_tables_fitted_to_drawn_labels(sets):
    """Each table is fitted anew, with the edges and pooling that its own draws make."""
    table, (fitted, _), (judged, hits) = sets
    rng = np.random.default_rng(1)
    chances = [table.look_up(values).probability for values in (fitted, judged)]
    drawn = []
    for _ in range(1500):
        told, came_true = (rng.random(len(chance)) < chance for chance in chances)
        again = fit_bin_table(fitted, told, n_bins=BINS, prior_strength=2.0, lookup=table.lookup)
        drawn.append(ece(again, judged, came_true))
    band = evaluation_band(table, fitted, judged, hits, seed=0)
    assert_quantiles(band, drawn, median=0.08, upper=0.1)
    assert band.observed == pytest.approx(ece(table, judged, hits), rel=1e-12)
    assert (band.score, band.resamples, band.refitted) == ("ece_15", 1000, True)


@pytest.mark.parametrize("lookup", ["step", "smooth"])
def test_a_calibrated_world_leaves_the_band_once_in_a_hundred_times(lookup):
    """Binomial with 300 tries at .01 and some of discreteness: 10 is beyond four deviations."""
    outside = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        fitted, judged = drawn_set(rng, 400), drawn_set(rng, 400)
        table = fit_bin_table(*fitted, n_bins=8, lookup=lookup)
        band = evaluation_band(table, fitted[0], *judged, seed=seed, resamples=300)
        outside += not band.consistent
    assert outside <= 10


@pytest.mark.parametrize("off", [-0.1, 0.1])
def test_a_curve_that_is_wrong_is_not_explained_by_chance(off):
    rng = np.random.default_rng(3)
    (fitted, hits), judged = drawn_set(rng, 2000), drawn_set(rng, 2000)
    table = fit_bin_table(fitted, hits, n_bins=10, lookup="smooth")
    folds = np.arange(2000) % 10
    assert evaluation_band(table, fitted, *judged, seed=0).consistent
    moved = np.clip(table.curve.probability + off, 0.0, 1.0)
    ends = {"lower": np.zeros_like(moved), "upper": np.ones_like(moved)}
    wrong = replace(table, curve=replace(table.curve, probability=moved, **ends))

    assert not evaluation_band(wrong, fitted, *judged, seed=0).consistent
    observed = ece(wrong, fitted, hits)
    assert not cross_validated_band(wrong, fitted, folds, observed=observed, seed=0).consistent
    predictions = predict_with_table(wrong, *judged)
    assert ece_permutation_test(wrong, predictions, rng=rng) < 0.001


def mean_error_of_folds(uncertainty, hits, folds, *, n_bins):
    """Return the mean over folds of the error of tables fitted to the other folds."""
    errors = []
    for fold in np.unique(folds):
        held = folds == fold
        table = fit_bin_table(uncertainty[~held], hits[~held], n_bins=n_bins)
        errors.append(ece(table, uncertainty[held], hits[held]))
    return float(np.mean(errors))


def test_cross_validated_band_is_that_of_folds_fitted_to_drawn_labels():
    rng = np.random.default_rng(8)
    uncertainty, hits = drawn_set(rng, 500)
    table = fit_bin_table(uncertainty, hits, n_bins=5)
    folds = np.arange(500) % 5
    chance = table.look_up(uncertainty).probability
    drawn = [
        mean_error_of_folds(uncertainty, rng.random(500) < chance, folds, n_bins=5)
        for _ in range(300)
    ]
    band = cross_validated_band(table, uncertainty, folds, observed=0.05, seed=0)
    assert band.observed == 0.05
    assert_quantiles(band, drawn, median=0.06, upper=0.12)


def test_confidence_band_draws_the_judging_labels_alone():
    rng = np.random.default_rng(2)
    probability = rng.random(400) ** 0.3
    drawn = []
    for _ in range(1500):
        judged = Predictions(
            uncertainty=-probability, hits=rng.random(400) < probability, probability=probability
        )
        drawn.append(SCORES["ece_15"].compute(judged))
    band = confidence_band(probability, 0.02, seed=0)
    assert_quantiles(band, drawn, median=0.05, upper=0.08)
    assert (band.score, band.refitted) == ("ece_15", False)


@pytest.mark.parametrize("hit", [True, False])
@pytest.mark.parametrize("n_samples", [50, 3000])
def test_an_event_that_never_varies_is_what_its_table_says(n_samples, hit):
    """Nearly every draw is the data themselves: their error is the 99 % point, to rounding."""
    uncertainty, hits = np.arange(n_samples, dtype=np.float32), np.full(n_samples, hit)
    folds = np.arange(n_samples) % 10
    observed = mean_error_of_folds(uncertainty, hits, folds, n_bins=1)
    table = fit_bin_table(uncertainty, hits, n_bins=1)
    assert cross_validated_band(table, uncertainty, folds, observed=observed, seed=0).consistent


def test_nothing_judged_has_no_band():
    uncertainty = np.linspace(0, 1, 30, dtype=np.float32)
    table = fit_bin_table(uncertainty, uncertainty < 0.5, n_bins=3)
    nothing = np.empty(0, dtype=np.float32)
    assert evaluation_band(table, uncertainty, nothing, nothing.astype(bool), seed=0) is None
    assert confidence_band(np.empty(0), None, seed=0) is None
    folds = np.zeros(30, dtype=np.int64)
    assert cross_validated_band(table, uncertainty, folds, observed=None, seed=0) is None


def sample_of(rng, n_samples, chance):
    uncertainty = rng.random(n_samples).astype(np.float32)
    return uncertainty, rng.random(n_samples) >= chance(uncertainty)


def test_permutation_p_value_is_that_of_all_deals():
    """Two bins of six, of which the fit held three each: every deal, by its probability."""
    uncertainty = np.float32([1, 2, 3, 7, 8, 9])
    table = fit_bin_table(uncertainty, np.array([1, 1, 1, 1, 0, 0], dtype=bool), n_bins=2)
    judged = predict_with_table(table, uncertainty, np.array([1, 0, 0, 0, 0, 1], dtype=bool))
    hits = np.array([4, 2])
    observed, chance = SCORES["ece"].compute(judged), 0.0
    for dealt in product(range(4), range(4)):
        fitted = hits - np.array(dealt)
        if ((fitted < 0) | (fitted > 3)).any():
            continue
        accuracy = fitted.sum() / 6 if 0 < fitted.sum() < 6 else (fitted.sum() + 0.5) / 7
        error = np.abs(np.array(dealt) / 3 - (fitted + accuracy) / 4).mean()
        ways = [
            comb(h, d) * comb(6 - h, 3 - d) / comb(6, 3) for h, d in zip(hits, dealt, strict=True)
        ]
        chance += np.prod(ways) * (error >= observed - 1e-9)

    found = ece_permutation_test(table, judged, rng=np.random.default_rng(0))
    assert found == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / 2000))


def test_p_value_of_the_gap_is_that_of_all_deals():
    """Two bins, of which the fit held three and two: every deal, by its probability."""
    uncertainty = np.float32([1, 2, 3, 7, 8])
    table = fit_bin_table(uncertainty, np.array([1, 1, 1, 1, 0], dtype=bool), n_bins=2)
    others, right = np.float32([1, 2, 2, 3, 7, 8, 8]), np.array([0, 0, 1, 0, 0, 0, 1], dtype=bool)
    judged = predict_with_table(table, others, right)
    held = table.counts
    counts = np.bincount(judged.bins)
    hits = table.hits + np.bincount(judged.bins[right], minlength=2)
    expected, chance = (counts * hits / (held + counts)).sum(), 0.0
    for dealt in product(*(range(h + 1) for h in hits)):
        fitted = hits - np.array(dealt)
        if ((np.array(dealt) > counts) | (fitted > held)).any():
            continue
        ways = [
            comb(h, d) * comb(n + m - h, m - d) / comb(n + m, m)
            for h, d, n, m in zip(hits, dealt, held, counts, strict=True)
        ]
        chance += np.prod(ways) * (abs(sum(dealt) - expected) >= abs(2 - expected) - 1e-9)

    found = gap_permutation_test(table, uncertainty, judged, rng=np.random.default_rng(0))
    assert 0.01 < chance < 0.9
    assert found == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / 2000))


@pytest.mark.parametrize("lookup", ["step", "interpolated", "smooth"])
@pytest.mark.parametrize("drop", [0.0, 0.1])
def test_the_gap_shows_that_answers_are_worse_everywhere(lookup, drop):
    """Errors in either direction show it half as often; a skewed set like the fitted one does not.

    False alarms are binomial with 100 tries at .05; 13 is beyond 3.5 deviations.
    """
    by_gap, by_error = 0, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        fitted, skewed = rng.random(600), rng.random(600) ** (1.0 if drop else 1.3)
        table = fit_bin_table(
            fitted.astype(np.float32), rng.random(600) < 0.95 - 0.6 * fitted, n_bins=8,
            lookup=lookup,
        )  # fmt: skip
        right = rng.random(600) < 0.95 - 0.6 * skewed - drop
        judged = predict_with_table(table, skewed.astype(np.float32), right)
        by_error += ece_permutation_test(table, judged, rng=rng, resamples=500) < 0.01
        p_value = gap_permutation_test(
            table, fitted.astype(np.float32), judged, rng=rng, resamples=500
        )
        by_gap += p_value < (0.01 if drop else 0.05)
    if drop:
        assert by_gap >= 80
        assert by_error <= 65
    else:
        assert by_gap <= 13


@pytest.mark.parametrize(
    ("n_samples", "chance", "lookup"),
    [
        (400, lambda u: u / 4, "step"),
        (2000, lambda u: u / 500, "step"),  # two errors in all: where the band is too narrow
        (400, lambda u: u / 4, "interpolated"),
        (400, lambda u: u / 4, "smooth"),
    ],
)
def test_permutation_test_rejects_like_sets_as_rarely_as_said(n_samples, chance, lookup):
    rng = np.random.default_rng(1)
    calls = 0
    for _ in range(200):
        table = fit_bin_table(*sample_of(rng, n_samples, chance), n_bins=5, lookup=lookup)
        judged = predict_with_table(table, *sample_of(rng, n_samples, chance))
        calls += ece_permutation_test(table, judged, rng=rng) < 0.05

    assert calls / 200 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


@pytest.mark.parametrize("lookup", ["step", "interpolated"])
def test_hits_that_can_be_dealt_in_one_way_have_a_p_value_of_one(lookup):
    """Also where an interpolated table serves something else than its bins' own probabilities."""
    uncertainty, hits = np.arange(40, dtype=np.float32), np.arange(40) < 20
    table = fit_bin_table(uncertainty, hits, n_bins=2, lookup=lookup)
    judged = predict_with_table(table, uncertainty[15:25], hits[15:25])

    assert ece_permutation_test(table, judged, rng=np.random.default_rng(0)) == 1.0
