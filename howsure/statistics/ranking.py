"""Samples ranked by a value, and the thresholds that separate them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from howsure.statistics.arrays import Counts, Edges, Floats, Hits, Rates, Uncertainty
from howsure.statistics.bins.design import ALIKE, SampleDesign
from howsure.statistics.bins.edges import UNDERFLOW, midpoints
from howsure.statistics.effective import EffectiveSums, sums_of_first, tail_factor


@dataclass(frozen=True, eq=False)
class RankedSamples:
    """Samples in ascending order of a value; samples of equal value form a block.

    A threshold cannot separate equal values, so every cut lies between two blocks.

    Attributes
    ----------
    values : ndarray of float32 or float64, shape (n_samples,)
        Ascending.
    hits : ndarray of bool, shape (n_samples,)
        In the same order.
    ends : ndarray of int64, shape (n_blocks,)
        Number of samples up to and including each block.
    design : SampleDesign
        Weights and groups in the same order. Ranks count samples in every case.
    """

    values: Uncertainty | Floats
    hits: Hits
    ends: Counts
    design: SampleDesign = ALIKE

    @cached_property
    def block_weights(self) -> tuple[Counts | Floats, Counts | Floats]:
        """Weights of the hits and of the errors in each block; their counts without weights."""
        if self.design.weight is None:
            return self.block_hits, self.block_errors
        starts, weights = np.concatenate([[0], self.ends[:-1]]), self.design.weight
        hits = np.add.reduceat(weights * self.hits, starts)
        return hits, np.add.reduceat(weights * ~self.hits, starts)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.values)

    @property
    def n_errors(self) -> int:
        """Number of samples without a hit."""
        return int(self.errors_before[-1])

    @cached_property
    def errors_before(self) -> Counts:
        """Errors among the first ``i`` samples, shape (n_samples + 1,)."""
        return np.concatenate([[0], np.cumsum(~self.hits)])

    @property
    def block_counts(self) -> Counts:
        """Samples in each block, at least one."""
        return np.diff(self.ends, prepend=0)

    @property
    def block_errors(self) -> Counts:
        """Samples without a hit in each block."""
        return np.diff(self.errors, prepend=0)

    @property
    def block_hits(self) -> Counts:
        """Samples with a hit in each block."""
        return self.block_counts - self.block_errors

    @cached_property
    def thresholds(self) -> Edges:
        """All float32 thresholds that separate samples; each accepts ``U <= threshold``.

        One follows each block, half-way to the next value, like the edges of quantile bins. The
        last one is the largest value itself, because no sample lies beyond it.
        """
        greatest = self.values[self.ends - 1].astype(np.float32, copy=False)
        return np.append(midpoints(greatest[:-1], greatest[1:]), greatest[-1:])

    @property
    def accepted(self) -> Counts:
        """Samples at or below each threshold."""
        return self.ends

    @cached_property
    def errors(self) -> Counts:
        """Samples at or below each threshold that have no hit."""
        return self.errors_before[self.ends]

    @cached_property
    def coverage(self) -> Rates:
        """Share of the samples, weighted, at or below each threshold."""
        sums = self.error_sums
        if sums is None:
            return np.asarray(self.accepted / self.n_samples, dtype=np.float64)
        return np.asarray(sums.weights[self.ends - 1] / sums.weights[-1])

    @property
    def risk(self) -> Rates:
        """Share of errors, weighted, among the samples at or below each threshold."""
        sums = self.error_sums
        return self.errors / self.accepted if sums is None else sums.at(self.ends - 1).shares

    @cached_property
    def error_sums(self) -> EffectiveSums | None:
        """Sums of the errors among the first samples, if they have weights or groups."""
        return None if self.design.is_plain else sums_of_first(~self.hits, self.design)

    def error_rates(self, counts: Counts, tail: float) -> tuple[Rates, Floats]:
        """Return the error rates of the first ``counts`` samples, and how many they are worth.

        Parameters
        ----------
        counts : ndarray of int64, shape (n_counts,)
            At least 1.
        tail : float
            Level of a test, or probability of each tail of an interval.
        """
        if self.error_sums is not None:
            sums = self.error_sums.at(counts - 1)
            return sums.shares, sums.sizes * tail_factor(sums.groups, tail)
        worth = counts.astype(np.float64)
        return self.errors_before[counts] / worth, worth

    def index_of_rank(self, ranks: Counts | Floats) -> Counts:
        """Return the index of the first threshold that accepts at least ``ranks`` samples.

        A rank inside a block of equal values means the whole block.

        Parameters
        ----------
        ranks : ndarray, shape (n_ranks,)
            At most ``n_samples``.
        """
        return np.searchsorted(self.ends, ranks, side="left").astype(np.int64, copy=False)

    def thresholds_of_coverage(self, shares: Rates) -> Edges:
        """Return the smallest thresholds that accept at least these shares of the samples.

        Parameters
        ----------
        shares : ndarray of float64, shape (n_shares,)
            In (0, 1].
        """
        # .7 of 10 samples is the 7th value, though .7 * 10 may be 7.000000000000001 in float64.
        places = np.searchsorted(self.coverage, shares * (1.0 - 1e-12), side="left")
        return self.thresholds[np.minimum(places, len(self.ends) - 1)]


def rank_samples(
    values: Uncertainty | Floats, hits: Hits, design: SampleDesign = ALIKE
) -> RankedSamples:
    """Sort samples by ascending value.

    Parameters
    ----------
    values : ndarray of float32 or float64, shape (n_samples,)
        Free of NaN.
    hits : ndarray of bool, shape (n_samples,)
    design : SampleDesign
    """
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    is_end = np.ones(len(ranked), dtype=np.bool_)
    is_end[:-1] = ranked[1:] != ranked[:-1]
    ends = np.flatnonzero(is_end) + 1
    return RankedSamples(ranked, hits[order], ends, design.take(order))


def merge_underflow(uncertainty: Uncertainty) -> Uncertainty:
    """Replace all values below float32's normal range by one value, as quantile bins do.

    Some devices flush them to zero, so values that differ on one machine are equal on another.
    """
    return np.where(np.abs(uncertainty) < UNDERFLOW, UNDERFLOW, uncertainty)


def ranking_of(
    uncertainty: Uncertainty, hits: Hits | None = None, design: SampleDesign = ALIKE
) -> RankedSamples:
    """Sort samples by ascending uncertainty, to find thresholds between them.

    Values below float32's normal range are one block, as in quantile bins.

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
        Finite, at least one.
    hits : ndarray of bool, shape (n_samples,), optional
        All true by default, for thresholds that do not depend on hits.
    design : SampleDesign
    """
    given = np.ones(uncertainty.shape, np.bool_) if hits is None else hits
    return rank_samples(merge_underflow(uncertainty), given, design)


MOST_POINTS = 200


def downsample(progress: Rates, most: int = MOST_POINTS) -> Counts:
    """Return positions of at most ``most`` points, evenly spaced, including both ends.

    Parameters
    ----------
    progress : ndarray of float64, shape (n_points,)
        Position of each point along the curve, ascending.
    most : int
        At least 2.
    """
    n_points = len(progress)
    if n_points <= most:
        return np.arange(n_points, dtype=np.int64)
    wanted = np.linspace(progress[0], progress[-1], most)
    found = np.searchsorted(progress, wanted[1:-1], side="left")
    return np.unique(np.concatenate([[0], found, [n_points - 1]])).astype(np.int64, copy=False)


OOD_LEVELS = (0.9, 0.95, 0.99)
# Empirical Confidence Estimates, Table 4: detection of attacks at 5 % false positives.
ADVERSARIAL_LEVEL = 0.95


def ood_thresholds(
    ranked: RankedSamples, levels: Sequence[float] = OOD_LEVELS
) -> dict[float, float]:
    """Return ``a`` with ``P(U <= a) = level`` over the calibration set, for each level.

    Samples with ``U > a`` are flagged. The threshold is the smallest that keeps at least ``level``
    of the samples: half-way between the ``ceil(level n)``-th value, with all values equal to it,
    and the next one; or the largest value if there is no next one.

    Parameters
    ----------
    ranked : RankedSamples
    levels : sequence of float
        In (0, 1).

    Returns
    -------
    dict of float to float
        Thresholds by level, in the order of ``levels``; exact in float32.
    """
    found = ranked.thresholds_of_coverage(np.asarray(levels, dtype=np.float64))
    return {level: float(value) for level, value in zip(levels, found, strict=True)}
