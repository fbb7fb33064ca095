"""Sampling designs: samples that count for more than one, and samples that belong together.

With weights ``w`` and groups ``g`` a bin is worth ``n_eff = (sum w)^2 / V`` independent samples,
where ``V = (1 - rho) sum w_i^2 + rho sum_g (sum_{i in g} w_i)^2`` and ``rho`` is the intra-class
correlation of hits. Without groups, and for ``rho = 0``, it is Kish's effective sample size
``(sum w)^2 / sum w^2`` (Kish 1965, section 11.7); with equal weights it is ``n`` divided by the
design effect of clusters (Kish 1965, section 5.4).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import BinIndex, Counts, Floats, Hits, Rates

Groups: TypeAlias = NDArray[np.int64]
LEAST_EFFECTIVE = 5.0


class TooFewEffectiveSamples(ValueError):
    """A bin is worth fewer than five samples, because a few large weights or groups fill it."""


@dataclass(frozen=True, eq=False)
class SampleDesign:
    """Weights and groups of samples, by sample.

    Attributes
    ----------
    weights : ndarray of float64, shape (n_samples,), optional
        Positive and finite; only their ratios matter.
    groups : ndarray of int64, shape (n_samples,), optional
        Samples with equal codes belong together.
    """

    weights: Floats | None = None
    groups: Groups | None = None

    def at(self, rows: BinIndex | slice | NDArray[np.bool_]) -> "SampleDesign":
        """Return the design of the samples at ``rows``."""
        return SampleDesign(
            None if self.weights is None else self.weights[rows],
            None if self.groups is None else self.groups[rows],
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in (self.weights, self.groups) if array is not None)


def joined(parts: Sequence[SampleDesign | None]) -> SampleDesign | None:
    """Return the design of the samples of several parts, all of one kind."""
    found = [part for part in parts if part is not None]
    weights = [part.weights for part in found if part.weights is not None]
    groups = [part.groups for part in found if part.groups is not None]
    if not found:
        return None
    return SampleDesign(
        np.concatenate(weights) if weights else None, np.concatenate(groups) if groups else None
    )


@dataclass(frozen=True, eq=False)
class EffectiveBins:
    """What the samples of each bin are worth.

    Attributes
    ----------
    hit_rates : ndarray of float64, shape (n_bins,)
        Weighted.
    counts : ndarray of float64, shape (n_bins,)
        Effective samples: at most the count of the bin.
    shares : ndarray of float64, shape (n_bins,)
        Share of the total weight in each bin.
    size : float
        Effective samples of the whole set.
    """

    hit_rates: Rates
    counts: Floats
    shares: Rates
    size: float

    @property
    def hits(self) -> Floats:
        """Effective hits, shape (n_bins,)."""
        return self.hit_rates * self.counts


def effective_bins(bins: BinIndex, hits: Hits, n_bins: int, design: SampleDesign) -> EffectiveBins:
    """Return what the samples of each bin are worth under a design.

    Parameters
    ----------
    bins : ndarray of int64, shape (n_samples,)
        The bin of each sample; every bin holds at least one.
    hits : ndarray of bool, shape (n_samples,)
    n_bins : int
    design : SampleDesign
    """
    weights = np.ones(bins.size) if design.weights is None else design.weights
    # Only ratios matter; of equal weights every sum is then a count, without rounding.
    weights = weights / weights[0]
    totals = np.bincount(bins, weights, n_bins)
    rates = np.bincount(bins, weights * hits, n_bins) / totals
    variances = np.bincount(bins, np.square(weights), n_bins)
    variance = variances.sum()
    if design.groups is not None:
        groups = np.unique(design.groups, return_inverse=True)[1].reshape(-1)
        within, cells = np.unique(bins * (groups.max() + 1) + groups, return_inverse=True)
        bin_of_cell = within // (groups.max() + 1)
        rho = intraclass_correlation(cells.reshape(-1), bin_of_cell, hits)
        clustered = np.bincount(
            bin_of_cell, np.square(np.bincount(cells.reshape(-1), weights)), n_bins
        )
        variances = (1.0 - rho) * variances + rho * clustered
        together = np.square(np.bincount(groups, weights)).sum()
        variance = (1.0 - rho) * variance + rho * together
    total = totals.sum()
    return EffectiveBins(
        hit_rates=rates,
        counts=np.square(totals) / variances,
        shares=totals / total,
        size=float(total * total / variance),
    )


def intraclass_correlation(cells: BinIndex, bin_of_cell: BinIndex, values: Hits | Floats) -> float:
    """Return the correlation of hits, or of other values, within groups, from 0 to 1.

    The estimate by analysis of variance, pooled over bins: Donner 1986, section 2; Ridout et al.
    1999, section 3.1. A cell is the part of a group in one bin. If values do not vary within bins,
    nothing is known of the correlation, and it is 1: each group then counts as one sample.

    Parameters
    ----------
    cells : ndarray of int64, shape (n_samples,)
    bin_of_cell : ndarray of int64, shape (n_cells,)
    values : ndarray of bool or float64, shape (n_samples,)
    """
    sizes = np.bincount(cells)
    cell_sums = np.bincount(cells, values)
    counts = np.bincount(bin_of_cell, sizes)
    bin_means = np.bincount(bin_of_cell, cell_sums) / np.maximum(counts, 1.0)
    means = cell_sums / sizes
    n_cells, n_bins = len(sizes), int(np.count_nonzero(counts))
    free_between, free_within = n_cells - n_bins, len(cells) - n_cells
    if free_between == 0 or free_within == 0:
        return 1.0 if free_within else 0.0
    between = float(sizes @ np.square(means - bin_means[bin_of_cell])) / free_between
    within = float(np.square(values - means[cells]).sum()) / free_within
    squares = np.bincount(bin_of_cell, np.square(sizes.astype(np.float64)))
    typical = (len(cells) - float(np.sum(squares / np.maximum(counts, 1.0)))) / free_between
    spread = between + (typical - 1.0) * within
    return float(np.clip((between - within) / spread, 0.0, 1.0)) if spread > 0.0 else 1.0


def check_effective(
    effective: EffectiveBins, counts: Counts, *, measure: str, design: SampleDesign
) -> None:
    """Refuse a table with a bin that is worth fewer than five samples.

    Raises
    ------
    TooFewEffectiveSamples
        Naming the first such bin.
    """
    few = effective.counts < LEAST_EFFECTIVE
    if not few.any():
        return
    place = int(np.argmax(few))
    of = f" of {measure}" if measure else ""
    cause = "weights" if design.groups is None else "groups and weights"
    cause = "groups" if design.weights is None else cause
    raise TooFewEffectiveSamples(
        f"expected {cause} that leave each bin at least {LEAST_EFFECTIVE:g} effective samples, got "
        f"{effective.counts[place]:.2g} in bin {place}{of}, which holds {counts[place]}; set "
        'config.bins to fewer bins or "auto", send more samples, or cap the largest weights'
    )
