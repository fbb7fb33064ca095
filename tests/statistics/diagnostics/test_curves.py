"""Curves as stored, and the grid of ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import uncertainties
from scipy.stats import chi2

from howsure.statistics.diagnostics.curves import (
    fit_curves,
    precision_recall_curve,
    risk_coverage_curve,
    roc_curve,
)
from howsure.statistics.diagnostics.rank_grid import fit_rank_grid
from howsure.statistics.ranking import downsample, merge_underflow, ranking_of

WHOLE = {"risk_coverage": risk_coverage_curve, "roc": roc_curve}
WHOLE["precision_recall"] = precision_recall_curve


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("uncertainty", [[0.5], [0.5, 0.5, 0.5], [0, 1, 2]])
def test_one_sided_sets_have_no_roc_curve_and_no_gap(right, uncertainty):
    hits = np.full(len(uncertainty), right)
    curves = fit_curves(ranking_of(np.float32(uncertainty), hits))
    assert (curves.roc, curves.precision_recall is None) == (None, right)
    assert curves.risk_coverage.risk.tolist() == [float(not right)] * len(set(uncertainty))


def test_stored_curves_are_thinned_and_keep_their_ends():
    rng = np.random.default_rng(0)
    points = ranking_of(rng.random(5000).astype(np.float32), rng.random(5000) < 0.9)
    stored = fit_curves(points)
    for name, compute in WHOLE.items():
        kept, whole = vars(getattr(stored, name)), vars(compute(points))
        assert 100 < len(kept["threshold"]) <= 200
        for field, values in kept.items():
            assert (values[[0, -1]] == whole[field][[0, -1]]).all()
            assert np.isin(values, whole[field]).all()
    # Points that crowd together are the first to go.
    kept = downsample(np.append(np.full(1000, 0.5), np.linspace(0.5, 1.0, 300)))
    assert (kept[0], kept[-1], len(kept) <= 200) == (0, 1299, True)
    assert np.count_nonzero((kept > 0) & (kept < 1000)) == 0


@given(uncertainties(), st.integers(1, 80), st.integers(0, 5))
def test_cells_hold_equal_shares_of_a_sort_by_value_and_key(uncertainty, n_bins, seed):
    rng = np.random.default_rng(seed)
    keys = rng.choice(2**32, size=len(uncertainty), replace=False).astype(np.uint32)
    grid = fit_rank_grid(uncertainty, keys, n_bins=n_bins)
    cells = np.bincount(grid.assign(uncertainty, keys), minlength=grid.n_cells)
    assert grid.n_cells == min(n_bins, len(uncertainty))
    assert cells.tolist() == grid.counts.tolist()
    assert cells.max() - cells.min() <= 1
    pairs = sorted(zip(merge_underflow(uncertainty).tolist(), keys.tolist(), strict=True))
    found = list(zip(grid.uncertainty.tolist(), grid.tie_key.tolist(), strict=True))
    assert found == [pairs[rank - 1] for rank in grid.ranks]


def test_later_samples_of_one_distribution_fall_evenly_even_if_all_are_tied():
    """But samples of one key share a cell."""
    rng, tied = np.random.default_rng(1), np.zeros(20_000, dtype=np.float32)
    known, later = (rng.integers(0, 2**32, n, dtype=np.uint32) for n in (20_000, 5000))
    grid = fit_rank_grid(tied, known, n_bins=10)
    counts = np.bincount(grid.assign(tied[:5000], later), minlength=10)
    assert ((counts - 500) ** 2 / 500).sum() < chi2.isf(1e-4, 9) * (1 + 5000 / 20_000)
    same = np.full(6, 7, dtype=np.uint32)
    grid = fit_rank_grid(tied[:6], same, n_bins=3)
    assert set(grid.assign(tied[:6], same).tolist()) == {0}
