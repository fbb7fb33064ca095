"""Edges of quantile bins."""

import numpy as np

from howsure.statistics.arrays import BinIndex, Counts, Edges, Floats, Uncertainty, as_uncertainty
from howsure.statistics.bins.design import ALIKE, SampleDesign

UNDERFLOW = np.float32(1e-37)


def midpoints(lower: Uncertainty, upper: Uncertainty) -> Edges:
    """Return a float32 edge ``e`` with ``lower <= e < upper``, half-way where float32 allows.

    The mean is computed in float64. If it rounds to the upper value, which a right-closed bin would
    then include, the edge is the lower value. No edge lies below float32's normal range, because
    values there form one block.

    Parameters
    ----------
    lower, upper : ndarray of float32, shape (n_edges,)
        ``lower < upper``.
    """
    middle = (lower.astype(np.float64) + upper.astype(np.float64)) / 2.0
    edge = middle.astype(np.float32)
    edge = np.where(np.abs(edge) < UNDERFLOW, np.maximum(lower, -UNDERFLOW), edge)
    return np.where(edge >= upper, lower, edge)


def quantile_edges(uncertainty: Uncertainty, n_bins: int, design: SampleDesign = ALIKE) -> Edges:
    """Return edges at the ``i / n_bins`` quantiles, midway between the samples on either side.

    Definition 1 of Oberman et al., with bins closed on the right. An edge *on* a sample would let
    the last bits of another batch size move that sample to the next bin; a midpoint does not.
    Without ties a bin holds ``n // n_bins`` samples or one more. Equal values share a bin: an edge
    inside a block of ties moves to the block's end, and edges that meet there merge. Values below
    float32's normal range are one block, as some devices flush them to zero.

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
        Finite, at least one.
    n_bins : int
        Number of bins requested, at least 1.
    design : SampleDesign
        With weights, edges lie where the cumulative weight first reaches ``i / n_bins`` of the
        total, so that bins are of about equal weight.

    Returns
    -------
    ndarray of float32, shape (n_found + 1,)
        Ascending, from ``-inf`` to ``inf``; ``1 <= n_found <= n_bins``.
    """
    if design.weight is None:
        values = _sorted_blocks(uncertainty)
        quantiles = np.arange(1, n_bins, dtype=np.int64) * values.size // n_bins
    else:
        order = np.argsort(uncertainty, kind="stable")
        values = _sorted_blocks(uncertainty[order])
        quantiles = _weighted_quantiles(design.weight[order], n_bins)
    # With fewer samples than bins, no edge may lie below the smallest sample: its bin is empty.
    below = values[quantiles[quantiles > 0] - 1]
    block_ends = np.unique(np.searchsorted(values, below, side="right"))
    block_ends = block_ends[block_ends < values.size]
    inner = midpoints(values[block_ends - 1], values[block_ends])
    return np.concatenate([[-np.inf], inner, [np.inf]]).astype(np.float32)


def _weighted_quantiles(weights: Floats, n_bins: int) -> Counts:
    """Return how many samples, in their order, reach each of the shares ``i / n_bins``."""
    reached = np.cumsum(weights)
    # Three tenths of a sum are not less than the third of ten equal weights, in spite of rounding.
    shares = np.arange(1, n_bins) / n_bins * reached[-1] * (1.0 - 1e-12)
    return np.asarray(np.searchsorted(reached, shares, side="left") + 1, dtype=np.int64)


def _sorted_blocks(uncertainty: Uncertainty) -> Uncertainty:
    """Return the values in ascending order, those below float32's normal range as one."""
    values = np.where(np.abs(uncertainty) < UNDERFLOW, UNDERFLOW, uncertainty)
    is_sorted = (values[1:] >= values[:-1]).all()
    return values if is_sorted else np.sort(values)


def edges_cut_ties(uncertainty: Uncertainty, n_bins: int) -> bool:
    """Tell whether one of the ``i / n_bins`` quantiles falls among equal values."""
    values = _sorted_blocks(uncertainty)
    places = np.arange(1, n_bins, dtype=np.int64) * values.size // n_bins
    places = places[places > 0]
    return bool((values[places - 1] == values[places]).any())


def assign_bins(uncertainty: Uncertainty, edges: Edges) -> BinIndex:
    """Return the index ``i`` with ``edges[i] < uncertainty <= edges[i + 1]``.

    Bins are closed on the right everywhere (Definition 1 of Oberman et al.).

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
    edges : ndarray of float32, shape (n_bins + 1,)
        Ascending; the outer ones are infinite, so every finite value has a bin.

    Returns
    -------
    ndarray of int64, shape (n_samples,)
        In ``[0, n_bins)``.

    Raises
    ------
    ValueError
        If a value is not finite: it has no bin, and a comparison alone would call NaN the most
        certain of all.
    """
    values = as_uncertainty(uncertainty)
    return np.searchsorted(edges[1:-1], values, side="left").astype(np.int64, copy=False)
