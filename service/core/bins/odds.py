"""Odds ratios of probabilities."""

import numpy as np

from service.core.arrays import Rates


def odds_ratio(probability: Rates, accuracy: float) -> Rates:
    """Return ``OR(p, a) = max(O(p) / O(a), O(a) / O(p))``, with ``O(p) = p / (1 - p)``.

    By how much the odds move, up or down, from ``a`` to ``p``: Finlay & Oberman's expected odds
    ratio averages it over bins.

    Parameters
    ----------
    probability : ndarray of float64, shape (n_bins,)
        In (0, 1).
    accuracy : float
        In (0, 1).

    Returns
    -------
    ndarray of float64, shape (n_bins,)
        At least 1, the value at ``p = a``.
    """
    ratio = probability * (1.0 - accuracy) / ((1.0 - probability) * accuracy)
    return np.maximum(ratio, 1.0 / ratio)
