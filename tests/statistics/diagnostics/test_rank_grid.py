import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import uncertainties
from scipy.stats import chi2

from howsure.statistics.diagnostics.rank_grid import fit_rank_grid
from howsure.statistics.ranking import merge_underflow


def distinct_keys(n_samples, seed=0):
    rng = np.random.default_rng(seed)
    return rng.choice(2**32, size=n_samples, replace=False).astype(np.uint32)


@given(uncertainties(), st.integers(1, 80), st.integers(0, 5))
def test_cells_hold_equal_shares_of_a_sort_by_value_and_key(uncertainty, n_bins, seed):
    keys = distinct_keys(len(uncertainty), seed)
    grid = fit_rank_grid(uncertainty, keys, n_bins=n_bins)
    cells = np.bincount(grid.assign(uncertainty, keys), minlength=grid.n_cells)
    assert grid.n_cells == min(n_bins, len(uncertainty))
    assert cells.tolist() == grid.counts.tolist()
    assert cells.max() - cells.min() <= 1

    pairs = sorted(zip(merge_underflow(uncertainty).tolist(), keys.tolist(), strict=True))
    found = list(zip(grid.uncertainty.tolist(), grid.tie_key.tolist(), strict=True))
    assert found == [pairs[rank - 1] for rank in grid.ranks]


def test_later_samples_of_one_distribution_fall_evenly_even_if_all_are_tied():
    rng = np.random.default_rng(1)
    tied = np.zeros(20_000, dtype=np.float32)
    grid = fit_rank_grid(tied, rng.integers(0, 2**32, 20_000, dtype=np.uint32), n_bins=10)
    later = grid.assign(tied[:5000], rng.integers(0, 2**32, 5000, dtype=np.uint32))

    counts = np.bincount(later, minlength=10)
    assert ((counts - 500) ** 2 / 500).sum() < chi2.isf(1e-4, 9) * (1 + 5000 / 20_000)


def test_identical_samples_share_a_cell():
    same = np.full(6, 7, dtype=np.uint32)
    grid = fit_rank_grid(np.zeros(6, dtype=np.float32), same, n_bins=3)

    assert set(grid.assign(np.zeros(6, dtype=np.float32), same).tolist()) == {0}
