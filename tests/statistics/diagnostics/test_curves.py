import numpy as np
import pytest

from howsure.statistics.diagnostics.curves import (
    fit_curves,
    precision_recall_curve,
    risk_coverage_curve,
    roc_curve,
)
from howsure.statistics.plain import to_plain
from howsure.statistics.ranking import downsample, ranking_of

WHOLE = {
    "risk_coverage": risk_coverage_curve,
    "roc": roc_curve,
    "precision_recall": precision_recall_curve,
}


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("uncertainty", [[0.5], [0.5, 0.5, 0.5], [0, 1, 2]])
def test_one_sided_sets_have_no_roc_curve_and_no_gap(right, uncertainty):
    hits = np.full(len(uncertainty), right)
    curves = fit_curves(ranking_of(np.float32(uncertainty), hits))

    assert curves.roc is None
    assert (curves.precision_recall is None) == right
    assert curves.risk_coverage.risk.tolist() == [float(not right)] * len(set(uncertainty))


def test_stored_curves_are_thinned_and_keep_their_ends():
    rng = np.random.default_rng(0)
    uncertainty, hits = rng.random(5000).astype(np.float32), rng.random(5000) < 0.9
    points = ranking_of(uncertainty, hits)
    stored = to_plain(fit_curves(points))

    for name, compute in WHOLE.items():
        assert 100 < len(stored[name]["threshold"]) <= 200
        for field, values in stored[name].items():
            whole = getattr(compute(points), field)
            assert values[0] == whole[0]
            assert values[-1] == (whole[-1] if np.isfinite(whole[-1]) else None)
            assert np.isin(values[:-1], whole).all()


def test_points_that_crowd_together_are_the_first_to_go():
    kept = downsample(np.append(np.full(1000, 0.5), np.linspace(0.5, 1.0, 300)))

    assert (kept[0], kept[-1]) == (0, 1299)
    assert np.count_nonzero((kept > 0) & (kept < 1000)) == 0
    assert len(kept) <= 200
