"""The fit of the smallest sets: numbers or None, never NaN, never a failure."""

import numpy as np
import pytest
from score_strategies import records_with_ranks

from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.scores import SCORES, applicable


@pytest.mark.parametrize(
    "ranks",
    [
        [0],
        [3],
        [0, 1],
        [0] * 19 + [1],
        [0] * 20,
        [1] * 20,
        [1] * 59 + [0],
    ],
    ids=["hit", "miss", "one-each", "one-miss-in-20", "no-miss", "all-miss", "one-hit-in-60"],
)
@pytest.mark.parametrize("lookup", ["step", "interpolated"])
@pytest.mark.parametrize("bins", ["auto", 7])
def test_gives_numbers_or_none(ranks, lookup, bins):
    records = records_with_ranks(ranks)
    fit = fit_calibration(
        records, options=FitOptions(top_k=(1,), lookup=lookup, bins=bins), evaluation=records
    )
    event = fit.events[1]
    assert event.accuracy == np.mean(np.array(ranks) == 0)
    assert event.served in event.measures
    for fitted in (*event.measures.values(), *event.baselines.values()):
        for name, score in fitted.scores.items():
            values = (score.mean, score.std, score.pooled, fitted.evaluation[name])
            assert all(value is None or np.isfinite(value) for value in values), name
            assert (score.mean is None) == (score.folds == 0)
            assert (score.std is None) == (score.folds < 2)
    for measure in event.measures.values():
        assert ((measure.table.probability > 0) & (measure.table.probability < 1)).all()
    assert fit.warnings


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
