"""Consistency bands, against labels drawn and tables fitted one by one, and in simulation."""

import numpy as np
import pytest

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.diagnostics.consistency import (
    confidence_band,
    cross_validated_band,
    evaluation_band,
)
from howsure.statistics.fit.cross_validation import predict_with_table
from howsure.statistics.scores import SCORES, Predictions

N_FITTED, N_JUDGED, BINS = 600, 500, 6


def ece(table, uncertainty, hits):
    return SCORES["ece"].compute(predict_with_table(table, uncertainty, hits))


def drawn_set(rng, n_samples):
    """Samples whose uncertainty is the chance of an error."""
    uncertainty = (rng.random(n_samples) ** 2).astype(np.float32)
    return uncertainty, rng.random(n_samples) >= uncertainty


@pytest.fixture(scope="module", params=["step", "interpolated"])
def sets(request):
    rng = np.random.default_rng(5)
    fitted, judged = drawn_set(rng, N_FITTED), drawn_set(rng, N_JUDGED)
    table = fit_bin_table(*fitted, n_bins=BINS, prior_strength=2.0, lookup=request.param)
    return table, fitted, judged


def test_observed_is_the_score_itself(sets):
    table, (fitted, _), (judged, hits) = sets
    band = evaluation_band(table, fitted, judged, hits, seed=0)
    assert band.observed == pytest.approx(ece(table, judged, hits), rel=1e-12)
    assert (band.score, band.resamples, band.refitted) == ("ece", 1000, True)


def test_is_what_drawing_and_fitting_one_by_one_gives(sets):
    """Each table is fitted anew, with the edges and pooling that its own draws make."""
    table, (fitted, _), (judged, hits) = sets
    rng = np.random.default_rng(1)
    chances = [table.look_up(values).probability for values in (fitted, judged)]
    found = []
    for _ in range(1500):
        told, came_true = (rng.random(len(chance)) < chance for chance in chances)
        again = fit_bin_table(fitted, told, n_bins=BINS, prior_strength=2.0, lookup=table.lookup)
        found.append(ece(again, judged, came_true))
    band = evaluation_band(table, fitted, judged, hits, seed=0)
    assert band.median == pytest.approx(np.median(found), rel=0.08)
    assert band.upper == pytest.approx(np.quantile(found, 0.99), rel=0.1)


def test_the_draws_depend_on_the_seed_alone(sets):
    table, (fitted, _), (judged, hits) = sets
    one = evaluation_band(table, fitted, judged, hits, seed=3)
    order = np.random.default_rng(0).permutation(N_JUDGED)
    other = evaluation_band(table, fitted, judged[order], hits[order], seed=3)
    for name in ("observed", "median", "upper"):
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-12)
    assert evaluation_band(table, fitted, judged, hits, seed=4).upper != one.upper


def test_a_calibrated_world_leaves_the_band_once_in_a_hundred_times():
    """Binomial with 300 tries at .01 and some of discreteness: 10 is beyond four deviations."""
    outside = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        fitted, judged = drawn_set(rng, 400), drawn_set(rng, 400)
        table = fit_bin_table(*fitted, n_bins=8)
        band = evaluation_band(table, fitted[0], *judged, seed=seed, resamples=300)
        outside += not band.consistent
    assert outside <= 10


def test_of_folds_is_that_of_their_mean():
    """Each fold's table fitted anew on the other folds' draws, with the edges of their samples."""
    rng = np.random.default_rng(8)
    uncertainty, hits = drawn_set(rng, 500)
    table = fit_bin_table(uncertainty, hits, n_bins=5)
    folds = np.arange(500) % 5
    chance = table.look_up(uncertainty).probability
    means = []
    for _ in range(300):
        told = rng.random(500) < chance
        errors = []
        for fold in range(5):
            held = folds == fold
            again = fit_bin_table(uncertainty[~held], told[~held], n_bins=5)
            errors.append(ece(again, uncertainty[held], told[held]))
        means.append(np.mean(errors))
    band = cross_validated_band(table, uncertainty, folds, observed=0.05, seed=0)
    assert band.observed == 0.05
    assert band.median == pytest.approx(np.median(means), rel=0.06)
    assert band.upper == pytest.approx(np.quantile(means, 0.99), rel=0.12)


def test_of_confidences_draws_the_judging_labels_alone():
    rng = np.random.default_rng(2)
    probability = rng.random(400) ** 0.3
    found = []
    for _ in range(1500):
        judged = Predictions(
            uncertainty=-probability, hits=rng.random(400) < probability, probability=probability
        )
        found.append(SCORES["ece_15"].compute(judged))
    band = confidence_band(probability, 0.02, seed=0)
    assert band.median == pytest.approx(np.median(found), rel=0.05)
    assert band.upper == pytest.approx(np.quantile(found, 0.99), rel=0.08)
    assert (band.score, band.refitted) == ("ece_15", False)


@pytest.mark.parametrize("hit", [True, False])
@pytest.mark.parametrize("n_samples", [50, 3000])
def test_an_event_that_never_varies_is_what_its_table_says(n_samples, hit):
    """Nearly every draw is the data themselves: their error is the 99 % point, to rounding."""
    uncertainty, hits = np.arange(n_samples, dtype=np.float32), np.full(n_samples, hit)
    folds = np.arange(n_samples) % 10
    errors = []
    for fold in range(10):
        held = folds == fold
        table = fit_bin_table(uncertainty[~held], hits[~held], n_bins=1)
        errors.append(ece(table, uncertainty[held], hits[held]))
    table = fit_bin_table(uncertainty, hits, n_bins=1)
    observed = float(np.mean(errors))
    assert cross_validated_band(table, uncertainty, folds, observed=observed, seed=0).consistent


def test_nothing_judged_has_no_band():
    uncertainty = np.linspace(0, 1, 30, dtype=np.float32)
    table = fit_bin_table(uncertainty, uncertainty < 0.5, n_bins=3)
    nothing = np.empty(0, dtype=np.float32)
    assert evaluation_band(table, uncertainty, nothing, nothing.astype(bool), seed=0) is None
    assert confidence_band(np.empty(0), None, seed=0) is None
    folds = np.zeros(30, dtype=np.int64)
    assert cross_validated_band(table, uncertainty, folds, observed=None, seed=0) is None
