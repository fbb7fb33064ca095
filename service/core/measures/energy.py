"""Minus the log-sum-exp of the logits."""

import numpy as np

from service.core.arrays import Floats
from service.core.bins.edges import UNDERFLOW
from service.core.measures.measure import Measure
from service.core.ranked import RankedScores

LARGEST = float(np.finfo(np.float32).max)


def energy(ranked: RankedScores, _k: int) -> Floats:
    """Return ``-log sum_i exp(z_i)``: Liu et al. 2020, eq. (4) at temperature 1.

    As ``-(z_(1) + U_1)``. The one measure that sees the size of the logits, which the softmax
    takes away: of probabilities, whose logits are known but for a constant, there is none.

    Parameters
    ----------
    ranked : RankedScores
        Of logits, not of ``log p``.

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        Of either sign; held to float32's range.
    """
    value = -(ranked.largest + np.log1p(ranked.tails[:, 0]))
    is_tiny = np.abs(value) < UNDERFLOW  # would be -0 in float32
    return np.clip(np.where(is_tiny, 0.0, value), -LARGEST, LARGEST)


MEASURE = Measure("energy", energy, needs_logits=True)
