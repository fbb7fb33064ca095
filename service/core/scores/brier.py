"""The Brier score and its decomposition over bins."""

import numpy as np

from service.core.arrays import Floats
from service.core.scores.judged import Judged
from service.core.scores.score import Score


def squared_errors(judged: Judged) -> Floats:
    """Return ``(q - X)^2`` of each sample, shape (n_samples,)."""
    return np.square(judged.probability - judged.hits)


def brier(judged: Judged) -> float:
    """Return the mean of ``(q - X)^2``: Oberman et al., section 5.1.

    On binned probabilities (one per bin) it equals uncertainty - resolution + calibration error.
    Within a bin an interpolated table serves several, and then the three leave a remainder.
    """
    return float(np.mean(squared_errors(judged)))


def brier_uncertainty(judged: Judged) -> float:
    """Return ``a (1 - a)``, with ``a`` the hit rate of all samples: the score of saying ``a``."""
    accuracy = float(np.mean(judged.hits))
    return accuracy * (1.0 - accuracy)


def brier_resolution(judged: Judged) -> float:
    """Return ``sum_i w_i (a - p_i)^2``, with ``p_i`` the hit rate of bin i."""
    bins = judged.occupied
    return float(bins.weights @ np.square(bins.hit_rates - np.mean(judged.hits)))


def brier_calibration_error(judged: Judged) -> float:
    """Return ``sum_i w_i (p_i - q_i)^2``, with ``q_i`` the mean probability served in bin i."""
    bins = judged.occupied
    return float(bins.weights @ np.square(bins.hit_rates - bins.probability))


SCORES = (
    Score("brier", "mean of (q - X)^2", brier),
    Score(
        "brier_uncertainty",
        "a (1 - a), a the hit rate: brier = uncertainty - resolution + calibration error",
        brier_uncertainty,
        larger_is_better=None,
        needs_bins=True,
    ),
    Score(
        "brier_resolution",
        "sum of w_i (p_i - a)^2 over bins, p_i the hit rate of bin i",
        brier_resolution,
        larger_is_better=True,
        groups_samples=True,
        needs_bins=True,
    ),
    Score(
        "brier_calibration_error",
        "sum of w_i (p_i - q_i)^2 over bins, q_i the mean probability served in bin i",
        brier_calibration_error,
        groups_samples=True,
        needs_bins=True,
    ),
)
