"""The unmerged grid of ranks behind a bin table, for exact tests on later data."""

from dataclasses import dataclass

import numpy as np

from howsure.statistics.arrays import BinIndex, Counts, TieKeys, Uncertainty
from howsure.statistics.ranking import merge_underflow


@dataclass(frozen=True, eq=False)
class RankGrid:
    """Samples at equally spaced ranks, by uncertainty and then by tie key.

    Equal values share a bin in a bin table. The grid separates them by tie key, which is as good as
    random, so the probability of each cell is its share of the ranks in spite of ties. Cell ``i``
    holds the samples after sample ``i - 1`` of the grid, up to and including sample ``i``.

    Attributes
    ----------
    ranks : ndarray of int64, shape (n_cells - 1,)
        Strictly ascending, from 1: number of calibration samples at or below.
    uncertainty : ndarray of float32, shape (n_cells - 1,)
    tie_key : ndarray of uint32, shape (n_cells - 1,)
        Of the sample at each rank.
    n_samples : int
        Size of the calibration set.
    """

    ranks: Counts
    uncertainty: Uncertainty
    tie_key: TieKeys
    n_samples: int

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.ranks) + 1

    @property
    def counts(self) -> Counts:
        """Calibration samples in each cell, shape (n_cells,)."""
        return np.diff(self.ranks, prepend=0, append=self.n_samples)

    def assign(self, uncertainty: Uncertainty, tie_keys: TieKeys) -> BinIndex:
        """Return the cell of each sample, in ``[0, n_cells)``; uncertainties are finite."""
        pairs = _as_pairs(uncertainty, tie_keys)
        grid = _as_pairs(self.uncertainty, self.tie_key)
        return np.searchsorted(grid, pairs, side="left").astype(np.int64, copy=False)


def fit_rank_grid(uncertainty: Uncertainty, tie_keys: TieKeys, *, n_bins: int) -> RankGrid:
    """Return the samples at ranks ``floor(i n / B)``, ``i = 1 … B - 1``.

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
        Finite, at least one.
    tie_keys : ndarray of uint32, shape (n_samples,)
    n_bins : int
        ``B``, at least 1; with fewer samples than bins there are as many cells as samples.
    """
    pairs = np.sort(_as_pairs(uncertainty, tie_keys))
    n_cells = min(n_bins, pairs.size)
    ranks = np.arange(1, n_cells, dtype=np.int64) * pairs.size // n_cells
    found = pairs[ranks - 1]
    return RankGrid(
        ranks=ranks,
        uncertainty=_ordered_to_float(found >> np.uint64(32)),
        tie_key=(found & np.uint64(0xFFFFFFFF)).astype(np.uint32),
        n_samples=pairs.size,
    )


def _as_pairs(uncertainty: Uncertainty, tie_keys: TieKeys) -> np.ndarray:
    """Return one uint64 per sample that sorts by uncertainty and then by key."""
    bits = merge_underflow(uncertainty).view(np.uint32)
    sign = np.uint32(0x80000000)
    ordered = np.where(bits & sign, ~bits, bits | sign).astype(np.uint64)
    return (ordered << np.uint64(32)) | tie_keys.astype(np.uint64)


def _ordered_to_float(ordered: np.ndarray) -> Uncertainty:
    sign = np.uint32(0x80000000)
    bits = ordered.astype(np.uint32)
    return np.where(bits & sign, bits ^ sign, ~bits).view(np.float32)
