"""The weights of bins."""

import numpy as np

from service.core.arrays import Rates

TOLERANCE = 1e-9


def check_weights(weights: Rates, *, n_bins: int) -> None:
    """Check that the weights of bins are a distribution.

    Raises
    ------
    ValueError
        If there is not one per bin, one is negative, or their sum is not 1.
    """
    if weights.shape != (n_bins,):
        raise ValueError(f"weights must have shape ({n_bins},), not {weights.shape}")
    total = float(np.sum(weights))
    if (weights < 0.0).any() or not abs(total - 1.0) <= TOLERANCE:
        raise ValueError(f"weights must not be negative and must sum to 1, not to {total:.6g}")
