"""Calibration error over bins of equal range, for any probability on [0, 1]."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from service.core.arrays import BinIndex, Rates
from service.core.scores.ece import largest_gap, weighted_gap
from service.core.scores.judged import Judged, OccupiedBins
from service.core.scores.score import Score


def equal_range_bins(probability: Rates, n_bins: int) -> BinIndex:
    """Return the index ``i`` with ``i / n_bins < probability <= (i + 1) / n_bins``.

    Closed on the right, so that a probability of exactly 1 is in the last bin; 0 is in the first.

    Parameters
    ----------
    probability : ndarray of float64, shape (n_samples,)
        In [0, 1].
    n_bins : int
        At least 1.
    """
    edges = np.arange(1, n_bins) / n_bins
    return np.searchsorted(edges, probability, side="left").astype(np.int64, copy=False)


def equal_range_ece(judged: Judged, n_bins: int) -> float:
    """Return ``sum_i w_i |p_i - q_i|``: Guo et al. 2017, eq. (3)."""
    return weighted_gap(_rebinned(judged, n_bins))


def equal_range_mce(judged: Judged, n_bins: int) -> float:
    """Return ``max_i |p_i - q_i|`` over bins that hold samples: Guo et al. 2017, eq. (5)."""
    return largest_gap(_rebinned(judged, n_bins))


def _rebinned(judged: Judged, n_bins: int) -> OccupiedBins:
    return replace(judged, bins=equal_range_bins(judged.probability, n_bins), table=None).occupied


def _with(n_bins: int, compute: Callable[[Judged, int], float]) -> Callable[[Judged], float]:
    return lambda judged: compute(judged, n_bins)


SCORES = (
    Score(
        "ece_10",
        "sum of w_i |p_i - q_i| over 10 bins of equal range on [0, 1], closed on the right",
        _with(10, equal_range_ece),
        groups_samples=True,
    ),
    Score(
        "ece_15",
        "sum of w_i |p_i - q_i| over 15 bins of equal range on [0, 1], closed on the right",
        _with(15, equal_range_ece),
        groups_samples=True,
    ),
    Score(
        "mce_15",
        "largest |p_i - q_i| over 15 bins of equal range on [0, 1], closed on the right",
        _with(15, equal_range_mce),
        groups_samples=True,
    ),
)
