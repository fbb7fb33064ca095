"""One measure's fit against a slow composition of its parts, and scores over folds.

Folds are dealt by hand, tables fitted on unsorted samples, scores those of scikit-learn.
"""

import numpy as np
import pytest
from sample_strategies import records_with_ranks, simulated_records
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.bins.prior import fit_prior
from howsure.statistics.bins.smooth import fit_curve
from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.cross_validation import pooled_scores
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.scores import SCORES, Predictions

N_FOLDS = 4


@pytest.fixture(scope="module")
def records():
    return simulated_records(300, seed=5, sharpness=2.0)


@pytest.fixture(scope="module")
def fit(records):
    options = FitOptions(bins=6, folds=N_FOLDS, prior_strength=2.0, lookup="step")
    return fit_calibration(records, options=options).events[1].measures["margin"]


@pytest.fixture(scope="module")
def held_out(records):
    """Probability of each sample by the table of the other folds, and the fold of each."""
    hits, uncertainty = records.hits(1), records.uncertainty["margin"]
    by_key = sorted(range(300), key=lambda i: (hits[i], records.tie_key[i]))
    folds = np.empty(300, dtype=np.int64)
    for position, sample in enumerate(by_key):
        folds[sample] = position % N_FOLDS
    probability = np.empty(300)
    for fold in range(N_FOLDS):
        others = folds != fold
        table = fit_bin_table(uncertainty[others], hits[others], n_bins=6, prior_strength=2.0)
        probability[~others] = table.look_up(uncertainty[~others]).probability
    return probability, folds


@pytest.mark.parametrize(
    ("name", "score"),
    [("brier", brier_score_loss), ("nll", log_loss)],
)
def test_scores_over_folds(records, fit, held_out, name, score):
    probability, folds = held_out
    hits = records.hits(1)
    values = [score(hits[folds == f], probability[folds == f]) for f in range(N_FOLDS)]
    found = fit.scores[name]
    assert found.mean == pytest.approx(np.mean(values), rel=1e-12)
    assert found.std == pytest.approx(np.std(values, ddof=1), rel=1e-9)
    assert found.folds == N_FOLDS
    assert found.pooled == pytest.approx(score(hits, probability), rel=1e-12)


def test_a_ranking_score_over_folds(records, fit, held_out):
    _, folds = held_out
    errors, uncertainty = ~records.hits(1), records.uncertainty["margin"]
    values = [roc_auc_score(errors[folds == f], uncertainty[folds == f]) for f in range(N_FOLDS)]
    assert fit.scores["auroc"].mean == pytest.approx(np.mean(values), rel=1e-12)
    assert fit.scores["auroc"].pooled == pytest.approx(roc_auc_score(errors, uncertainty))


def test_the_table_is_fitted_on_all_samples(records, fit):
    table = fit_bin_table(
        records.uncertainty["margin"], records.hits(1), n_bins=6, prior_strength=2.0
    )
    for name in ("edges", "counts", "hits", "probability", "lower", "upper"):
        np.testing.assert_array_equal(getattr(fit.table, name), getattr(table, name))
    np.testing.assert_allclose(fit.table.mean_uncertainty, table.mean_uncertainty, rtol=1e-12)
    assert fit.quantile_bins == 6


def test_the_one_number_of_bins_was_tried(fit):
    (candidate,) = fit.candidates
    assert candidate.n_bins == 6
    assert candidate.nll_mean == fit.scores["nll"].mean
    assert candidate.nll_std == fit.scores["nll"].std
    assert candidate.ece == fit.scores["ece"].mean


def test_a_curve_is_fitted_to_the_other_folds(records, held_out):
    """As `test_scores_over_folds`, and its fit to all samples is served."""
    _, folds = held_out
    options = FitOptions(bins=6, folds=N_FOLDS, measures=("margin",), serve={1: "margin"})
    fit = fit_calibration(records, options=options).events[1].measures["margin"]
    hits, uncertainty = records.hits(1), records.uncertainty["margin"]

    def curve(rows):
        return fit_curve(
            uncertainty[rows],
            hits[rows],
            measure="margin",
            prior=fit_prior(hits[rows]),
            interval=IntervalOptions(),
        )

    values = [
        log_loss(hits[folds == f], curve(folds != f).at(uncertainty[folds == f])[0])
        for f in range(N_FOLDS)
    ]
    # Sums over samples in another order.
    assert fit.scores["nll"].by_fold == pytest.approx(values, rel=1e-9)
    whole = curve(np.full(300, True))
    np.testing.assert_allclose(fit.table.curve.uncertainty, whole.uncertainty)
    np.testing.assert_allclose(fit.table.curve.probability, whole.probability, rtol=1e-9)


def test_pooled_eor_is_the_served_tables_and_pooled_ece_is_none(fit):
    table = fit.table
    assert fit.scores["eor"].pooled == pytest.approx(table.weights @ table.odds_ratios)
    assert fit.scores["ece"].pooled is None


def test_a_score_that_wants_an_error_counts_the_folds_that_have_one():
    fit = fit_calibration(records_with_ranks([0] * 97 + [1] * 3), options=FitOptions(top_k=(1,)))
    scores = fit.events[1].measures["entropy"].scores
    found, defined = scores["auroc"], [s for s in scores["auroc"].by_fold if s is not None]
    assert (found.folds, len(defined), len(found.by_fold)) == (3, 3, 10)
    assert (found.mean, found.std) == pytest.approx((np.mean(defined), np.std(defined, ddof=1)))
    assert found.pooled is not None
    assert scores["brier"].folds == 10


def test_learned_probabilities_are_not_pooled_in_groups():
    """Ten far-off folds of one bin would average to its hit rate: a calibration error of zero."""
    records = simulated_records(60, seed=1)
    judged = Predictions(
        uncertainty=records.uncertainty["entropy"],
        hits=records.hits(1),
        probability=records.raw_probability(1),
        log_floor=1e-3,
    )
    learned, given = (pooled_scores(judged, learned=flag) for flag in (True, False))
    for name, value in given.items():
        assert value is not None
        assert learned[name] == (None if SCORES[name].groups_samples else value)
    assert learned["ece_15"] is None
    assert learned["brier"] is not None
