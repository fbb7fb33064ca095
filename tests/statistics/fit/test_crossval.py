import numpy as np
import pytest
from score_strategies import simulated_records

from howsure.statistics.fit.cross_validation import (
    FoldScore,
    fold_scores,
    mean_and_std,
    pooled_scores,
    splits,
)
from howsure.statistics.scores import SCORES, Predictions


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
