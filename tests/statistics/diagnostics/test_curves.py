import json

import numpy as np
import pytest
from core_strategies import judged_uncertainties
from hypothesis import given

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.diagnostics.curves import (
    fit_curves,
    precision_recall_curve,
    risk_coverage_curve,
    roc_curve,
)
from howsure.statistics.fit.cross_validation import predict_with_table
from howsure.statistics.plain import to_plain
from howsure.statistics.ranking import downsample, ranking_of
from howsure.statistics.scores import SCORES, Predictions

WHOLE = {
    "risk_coverage": risk_coverage_curve,
    "roc": roc_curve,
    "precision_recall": precision_recall_curve,
}


def test_risk_coverage_curve_of_eight_samples():
    uncertainty = np.float32([1, 2, 3, 4, 5, 6, 7, 7])
    hits = np.array([1, 1, 0, 1, 1, 0, 0, 1], dtype=bool)
    curve = fit_curves(ranking_of(uncertainty, hits)).risk_coverage

    assert curve.coverage.tolist() == [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 1.0]
    assert curve.risk.tolist() == [0, 0, 1 / 3, 1 / 4, 1 / 5, 1 / 3, 3 / 8]
    assert curve.threshold.tolist() == [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.0]


@given(judged_uncertainties())
def test_area_under_the_roc_curve_is_the_score(sample):
    uncertainty, hits = sample
    curve = fit_curves(ranking_of(uncertainty, hits)).roc
    judged = predict_with_table(fit_bin_table(uncertainty, hits, n_bins=1), uncertainty, hits)

    score = SCORES["auroc"].compute(judged)
    if curve is None:
        assert score is None
    else:
        area = np.trapezoid(curve.true_positive_rate, curve.false_positive_rate)
        assert area == pytest.approx(score, abs=1e-12)


def test_without_ties_the_mean_risk_is_the_score():
    rng = np.random.default_rng(0)
    uncertainty, hits = rng.permutation(300).astype(np.float32), rng.random(300) < 0.8
    judged = Predictions(uncertainty=uncertainty, hits=hits, probability=np.full(300, 0.5))

    curve = risk_coverage_curve(ranking_of(uncertainty, hits))
    assert curve.risk.mean() == pytest.approx(SCORES["aurc"].compute(judged), rel=1e-12)


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("uncertainty", [[0.5], [0.5, 0.5, 0.5], [0, 1, 2]])
def test_one_sided_sets_have_no_roc_curve_and_no_gap(right, uncertainty):
    hits = np.full(len(uncertainty), right)
    curves = fit_curves(ranking_of(np.float32(uncertainty), hits))

    assert curves.roc is None
    assert (curves.precision_recall is None) == right
    assert curves.risk_coverage.risk.tolist() == [float(not right)] * len(set(uncertainty))
    json.dumps(to_plain(curves), allow_nan=False)


def test_stored_curves_are_thinned_and_keep_their_ends():
    rng = np.random.default_rng(0)
    uncertainty, hits = rng.random(5000).astype(np.float32), rng.random(5000) < 0.9
    points = ranking_of(uncertainty, hits)
    stored = json.loads(
        json.dumps(to_plain(fit_curves(ranking_of(uncertainty, hits))), allow_nan=False)
    )

    for name, compute in WHOLE.items():
        assert 100 < len(stored[name]["threshold"]) <= 200
        for field, values in stored[name].items():
            whole = getattr(compute(points), field)
            assert values[0] == whole[0]
            assert values[-1] == (whole[-1] if np.isfinite(whole[-1]) else None)
            assert np.isin(values[:-1], whole).all()


@pytest.mark.parametrize("n_points", [1, 200, 201, 5000])
def test_thinned_points_ascend_from_end_to_end(n_points):
    kept = downsample(np.arange(n_points) / n_points)

    assert len(kept) == min(n_points, 200)
    assert (kept[0], kept[-1]) == (0, n_points - 1)
    assert (np.diff(kept) > 0).all()


def test_points_that_crowd_together_are_the_first_to_go():
    kept = downsample(np.append(np.full(1000, 0.5), np.linspace(0.5, 1.0, 300)))

    assert (kept[0], kept[-1]) == (0, 1299)
    assert np.count_nonzero((kept > 0) & (kept < 1000)) == 0
    assert len(kept) <= 200
