"""Where a threshold on an uncertainty may fall, and what lies on its certain side."""

from dataclasses import dataclass

import numpy as np

from service.core.arrays import (
    Counts,
    Edges,
    Floats,
    Hits,
    Rates,
    Uncertainty,
    as_hits,
    as_uncertainty,
)
from service.core.bins.edges import UNDERFLOW, midpoints


@dataclass(frozen=True, eq=False)
class CutPoints:
    """All thresholds that tell samples apart, ascending; each accepts ``U <= threshold``.

    Equal values cannot be told apart, so a threshold follows each block of them, half-way to the
    next value, as the edges of quantile bins do. The last one is the greatest value itself:
    nothing is said of what lies beyond it.

    Attributes
    ----------
    thresholds : ndarray of float32, shape (n_blocks,)
    accepted, errors : ndarray of int64, shape (n_blocks,)
        Samples at or below the threshold, and those of them without a hit.
    """

    thresholds: Edges
    accepted: Counts
    errors: Counts

    @property
    def n_samples(self) -> int:
        """How many samples there are."""
        return int(self.accepted[-1])

    @property
    def n_errors(self) -> int:
        """How many of all samples have no hit."""
        return int(self.errors[-1])

    @property
    def has_ties(self) -> bool:
        """Whether two samples have equal values."""
        return len(self.accepted) < self.n_samples

    @property
    def coverage(self) -> Rates:
        """Share of the samples at or below each threshold."""
        return np.asarray(self.accepted / self.n_samples, dtype=np.float64)

    @property
    def risk(self) -> Rates:
        """Share of errors among the samples at or below each threshold."""
        return np.asarray(self.errors / self.accepted, dtype=np.float64)

    def holding(self, ranks: Counts | Floats) -> Counts:
        """Return the index of the first threshold that accepts at least ``ranks`` samples.

        A rank inside a block of equal values means the whole block.

        Parameters
        ----------
        ranks : ndarray, shape (n_ranks,)
            At most ``n_samples``.
        """
        return np.searchsorted(self.accepted, ranks, side="left").astype(np.int64, copy=False)


def merge_underflow(uncertainty: Uncertainty) -> Uncertainty:
    """Return the values with those below float32's normal range made one, as in quantile bins.

    Some devices flush them to zero: told apart on one machine, they are equal on the next.
    """
    return np.where(np.abs(uncertainty) < UNDERFLOW, UNDERFLOW, uncertainty)


def cut_points(uncertainty: Uncertainty, hits: Hits) -> CutPoints:
    """Return every threshold between the samples.

    Values below float32's normal range are one block, as in quantile bins.

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
        Finite, at least one.
    hits : ndarray of bool, shape (n_samples,)

    Raises
    ------
    ValueError
        If there is no sample, shapes differ or a value is not finite.
    """
    values = as_uncertainty(uncertainty)
    hits = as_hits(hits, n_samples=values.size)
    if values.size == 0:
        raise ValueError("uncertainty must hold at least one sample")
    values = merge_underflow(values)
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    accepted = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]) + 1, ranked.size)
    greatest = ranked[accepted - 1]
    return CutPoints(
        thresholds=np.append(midpoints(greatest[:-1], greatest[1:]), greatest[-1:]),
        accepted=accepted,
        errors=np.cumsum(~hits[order])[accepted - 1],
    )
