"""Calibration error over the table's own bins."""

import numpy as np

from service.core.scores.judged import Judged, OccupiedBins
from service.core.scores.score import Score


def weighted_gap(bins: OccupiedBins) -> float:
    """Return ``sum_i w_i |p_i - q_i|``: the hit rate of a bin against its mean probability."""
    return float(bins.weights @ np.abs(bins.hit_rates - bins.probability))


def largest_gap(bins: OccupiedBins) -> float:
    """Return ``max_i |p_i - q_i|`` over bins that hold samples."""
    return float(np.abs(bins.hit_rates - bins.probability).max())


def ece(judged: Judged) -> float:
    """Return the expected calibration error over the table's bins: Oberman et al., eq. (5)."""
    return weighted_gap(judged.occupied)


def mce(judged: Judged) -> float:
    """Return the maximum calibration error over the table's bins."""
    return largest_gap(judged.occupied)


SCORES = (
    Score(
        "ece",
        "sum of w_i |p_i - q_i| over the table's bins, w_i and p_i of the judged samples",
        ece,
        groups_samples=True,
        needs_bins=True,
    ),
    Score(
        "mce",
        "largest |p_i - q_i| over the table's bins",
        mce,
        groups_samples=True,
        needs_bins=True,
    ),
)
