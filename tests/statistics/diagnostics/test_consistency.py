"""Consistency bands, against labels drawn and tables fitted one by one, and in simulation."""

from dataclasses import replace

import numpy as np
import pytest

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.diagnostics.consistency import (
    confidence_band,
    cross_validated_band,
    evaluation_band,
)
from howsure.statistics.fit.cross_validation import predict_with_table
from howsure.statistics.scores import SCORES
from howsure.statistics.shift.permutation import ece_permutation_test

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
    for _ in range(300):
        told, came_true = (rng.random(len(chance)) < chance for chance in chances)
        again = fit_bin_table(fitted, told, n_bins=BINS, prior_strength=2.0, lookup=table.lookup)
        drawn.append(ece(again, judged, came_true))
    band = evaluation_band(table, fitted, judged, hits, seed=0)
    assert_quantiles(band, drawn, median=0.08, upper=0.1)
    assert band.observed == pytest.approx(ece(table, judged, hits), rel=1e-12)
    assert (band.score, band.resamples, band.refitted) == ("ece_15", 1000, True)


@pytest.mark.parametrize(("lookup", "runs", "most"), [("step", 300, 10), ("smooth", 150, 6)])
def test_a_calibrated_world_leaves_the_band_once_in_a_hundred_times(lookup, runs, most):
    """Binomial at .01 and some of discreteness: the most are four deviations above."""

    def is_inside(seed):
        rng = np.random.default_rng(seed)
        fitted, judged = drawn_set(rng, 400), drawn_set(rng, 400)
        table = fit_bin_table(*fitted, n_bins=8, lookup=lookup)
        return evaluation_band(table, fitted[0], *judged, seed=seed, resamples=300).consistent

    assert sum(not is_inside(seed) for seed in range(runs)) <= most


@pytest.mark.parametrize("off", [-0.1, 0.1])
def test_a_curve_that_is_wrong_is_not_explained_by_chance(off):
    rng, folds = np.random.default_rng(3), np.arange(2000) % 10
    (fitted, hits), judged = drawn_set(rng, 2000), drawn_set(rng, 2000)
    table = fit_bin_table(fitted, hits, n_bins=10, lookup="smooth")
    assert evaluation_band(table, fitted, *judged, seed=0).consistent
    moved = np.clip(table.curve.probability + off, 0.0, 1.0)
    ends = {"lower": np.zeros_like(moved), "upper": np.ones_like(moved)}
    wrong = replace(table, curve=replace(table.curve, probability=moved, **ends))

    assert not evaluation_band(wrong, fitted, *judged, seed=0).consistent
    observed = ece(wrong, fitted, hits)
    assert not cross_validated_band(wrong, fitted, folds, observed=observed, seed=0).consistent
    assert ece_permutation_test(wrong, predict_with_table(wrong, *judged), rng=rng) < 0.001


def mean_error_of_folds(uncertainty, hits, folds, *, n_bins):
    """Return the mean over folds of the error of tables fitted to the other folds."""
    errors = []
    for fold in np.unique(folds):
        held = folds == fold
        table = fit_bin_table(uncertainty[~held], hits[~held], n_bins=n_bins)
        errors.append(ece(table, uncertainty[held], hits[held]))
    return float(np.mean(errors))


def test_cross_validated_band_is_that_of_folds_fitted_to_drawn_labels():
    rng, folds = np.random.default_rng(8), np.arange(500) % 5
    uncertainty, hits = drawn_set(rng, 500)
    table = fit_bin_table(uncertainty, hits, n_bins=5)
    told = rng.random((300, 500)) < table.look_up(uncertainty).probability
    drawn = [mean_error_of_folds(uncertainty, one, folds, n_bins=5) for one in told]
    band = cross_validated_band(table, uncertainty, folds, observed=0.05, seed=0)
    assert band.observed == 0.05
    assert_quantiles(band, drawn, median=0.06, upper=0.12)


def test_confidence_band_draws_the_judging_labels_alone():
    """The error is that of 15 equal ranges, of all draws at once."""
    rng = np.random.default_rng(2)
    probability = rng.random(400) ** 0.3
    ranges = np.eye(15)[np.ceil(probability * 15).astype(int) - 1]
    gaps = (rng.random((1500, 400)) < probability) - probability
    band = confidence_band(probability, 0.02, seed=0)
    assert_quantiles(band, np.abs(gaps @ ranges).sum(axis=1) / 400, median=0.05, upper=0.08)
    assert (band.score, band.refitted) == ("ece_15", False)


@pytest.mark.parametrize(("hit", "n_samples"), [(True, 50), (False, 3000)])
def test_an_event_that_never_varies_is_what_its_table_says(n_samples, hit):
    """Nearly every draw is the data themselves: their error is the 99 % point, to rounding."""
    uncertainty, hits = np.arange(n_samples, dtype=np.float32), np.full(n_samples, hit)
    folds = np.arange(n_samples) % 10
    observed = mean_error_of_folds(uncertainty, hits, folds, n_bins=1)
    table = fit_bin_table(uncertainty, hits, n_bins=1)
    assert cross_validated_band(table, uncertainty, folds, observed=observed, seed=0).consistent


def test_nothing_judged_has_no_band():
    uncertainty, none = np.linspace(0, 1, 30, dtype=np.float32), np.empty(0, dtype=np.float32)
    table, folds = fit_bin_table(uncertainty, uncertainty < 0.5, n_bins=3), np.zeros(30, np.int64)
    assert evaluation_band(table, uncertainty, none, none.astype(bool), seed=0) is None
    assert confidence_band(np.empty(0), None, seed=0) is None
    assert cross_validated_band(table, uncertainty, folds, observed=None, seed=0) is None
