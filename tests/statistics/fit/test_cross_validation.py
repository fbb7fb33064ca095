"""Folds, and scores over them."""

import numpy as np
import pytest
from sample_strategies import records_with_ranks, simulated_records

from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.cross_validation import (
    FoldScore,
    fold_scores,
    mean_and_std,
    pooled_scores,
    splits,
)
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.scores import SCORES, Predictions, applicable


def test_one_sample_has_no_cross_validation():
    fit = fit_calibration(records_with_ranks([0]), options=FitOptions(top_k=(1,)))
    measure = fit.events[1].measures["entropy"]
    assert set(measure.scores) == set(SCORES)
    assert {score.folds for score in measure.scores.values()} == {0}
    assert measure.candidates[0].nll_mean is None
    assert set(fit.events[1].baselines["raw_softmax"].scores) == set(applicable(has_bins=False))


def test_a_score_that_wants_an_error_counts_the_folds_that_have_one():
    fit = fit_calibration(records_with_ranks([0] * 97 + [1] * 3), options=FitOptions(top_k=(1,)))
    scores = fit.events[1].measures["entropy"].scores
    assert scores["auroc"].folds == 3
    assert scores["auroc"].pooled is not None
    assert scores["brier"].folds == 10


def test_more_folds_than_samples():
    fit = fit_calibration(
        records_with_ranks([0, 1, 0, 2]), options=FitOptions(top_k=(1,), folds=10)
    )
    assert fit.events[1].measures["margin"].scores["brier"].folds == 4


def test_every_sample_is_held_out_once_and_never_fitted_with():
    folds = np.array([2, 0, 1, 1, 0, 2, 2])
    held = []
    for fitted, held_out in splits(folds):
        np.testing.assert_array_equal(np.sort(np.append(fitted, held_out)), np.arange(7))
        held.extend(held_out.tolist())
    assert sorted(held) == list(range(7))


def test_folds_without_a_score_are_left_out_and_counted():
    by_fold = [
        {"auroc": 0.5, "brier": 0.1},
        {"auroc": None, "brier": 0.3},
        {"auroc": 0.9, "brier": 0.2},
    ]
    found = fold_scores(by_fold, {"auroc": 0.7, "brier": None})
    assert found["auroc"] == FoldScore(
        pytest.approx(0.7), pytest.approx(0.2 * 2**0.5), 2, 0.7, (0.5, None, 0.9)
    )
    assert found["brier"] == FoldScore(
        pytest.approx(0.2), pytest.approx(0.1), 3, None, (0.1, 0.3, 0.2)
    )


def test_want_of_values_is_none_and_not_nan():
    assert mean_and_std(np.array([])) == (None, None)
    assert mean_and_std(np.array([0.25])) == (0.25, None)


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
