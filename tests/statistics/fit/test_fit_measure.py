"""Scores over folds: dealt by hand, tables fitted on unsorted samples, scores of scikit-learn."""

import numpy as np
import pytest
from sample_strategies import fit_of, records_with_ranks, simulated_records
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.fit.cross_validation import pooled_scores
from howsure.statistics.scores import SCORES, Predictions

N_FOLDS = 4
RECORDS = simulated_records(300, seed=5, sharpness=2.0)
HITS, U = RECORDS.hits(1), RECORDS.uncertainty["margin"]
TABLE = {"n_bins": 6, "prior_strength": 2.0, "measure": "margin"}


def dealt_by_hand():
    folds = np.empty(300, dtype=np.int64)
    by_key = sorted(range(300), key=lambda i: (HITS[i], RECORDS.tie_key[i]))
    folds[by_key] = np.arange(300) % N_FOLDS
    return folds


FOLDS = dealt_by_hand()
EACH_FOLD = [np.flatnonzero(fold == FOLDS) for fold in range(N_FOLDS)]


def held_out(lookup):
    """Probability of each sample by the table of the other folds."""
    probability = np.empty(300)
    for fold, rows in enumerate(EACH_FOLD):
        others = fold != FOLDS
        table = fit_bin_table(U[others], HITS[others], lookup=lookup, **TABLE)
        probability[rows] = table.look_up(U[rows]).probability
    return probability


@pytest.fixture(scope="module", params=["step", "smooth"])
def fit(request):
    options = {"bins": 6, "folds": N_FOLDS, "prior_strength": 2.0, "measures": ("margin",)}
    return fit_of(RECORDS, lookup=request.param, **options).events[1].measures["margin"]


def test_scores_over_folds(fit):
    probability = held_out(fit.table.lookup)
    for name, score in (("brier", brier_score_loss), ("nll", log_loss)):
        values = [score(HITS[rows], probability[rows]) for rows in EACH_FOLD]
        found = fit.scores[name]
        assert found.by_fold == pytest.approx(values, rel=1e-9)
        assert found.std == pytest.approx(np.std(values, ddof=1), rel=1e-7)
        assert found.pooled == pytest.approx(score(HITS, probability), rel=1e-9)
    values = [roc_auc_score(~HITS[rows], U[rows]) for rows in EACH_FOLD]
    assert fit.scores["auroc"].mean == pytest.approx(np.mean(values), rel=1e-12)
    assert fit.scores["auroc"].pooled == pytest.approx(roc_auc_score(~HITS, U))
    table = fit_bin_table(U, HITS, lookup=fit.table.lookup, **TABLE)  # fitted on all samples
    assert fit.scores["eor"].pooled == pytest.approx(table.weights @ table.odds_ratios)
    assert fit.scores["ece"].pooled is None


def test_a_score_that_wants_an_error_counts_the_folds_that_have_one():
    fit = fit_of(records_with_ranks([0] * 97 + [1] * 3), bins=5, folds=10)
    scores = fit.events[1].measures["entropy"].scores
    found, defined = scores["auroc"], [s for s in scores["auroc"].by_fold if s is not None]
    assert (found.folds, len(defined), len(found.by_fold)) == (3, 3, 10)
    assert (found.mean, found.std) == pytest.approx((np.mean(defined), np.std(defined, ddof=1)))
    assert found.pooled is not None
    assert scores["brier"].folds == 10


def test_learned_probabilities_are_not_pooled_in_groups():
    """Ten far-off folds of one bin would average to its hit rate: a calibration error of zero."""
    probability = RECORDS.raw_probability(1)
    judged = Predictions(uncertainty=U, hits=HITS, probability=probability, log_floor=1e-3)
    learned, plain = (pooled_scores(judged, learned=flag) for flag in (True, False))
    assert plain["ece_15"] is not None
    for name, value in plain.items():
        assert learned[name] == (None if SCORES[name].groups_samples else value)


def test_the_scale_of_a_curve_is_that_of_the_whole_set():
    """One value of 300 is negative: all folds go by ranks, as where all values are negative."""
    own = np.round(U * 1024) / 1024
    own[own.argmin()] = -1 / 1024
    options = {"bins": 6, "folds": N_FOLDS, "measures": ("margin", "supplied:own")}
    scores = []
    for values in (own, own - 8):
        records = RECORDS.with_supplied({"own": values})
        fit = fit_of(records, **options).events[1]
        scores.append(fit.measures["supplied:own"].scores["nll"].by_fold)
    assert scores[0] == pytest.approx(scores[1], rel=1e-6)
