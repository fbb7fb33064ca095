"""Minus the log of the largest probability."""

import numpy as np

from service.core.arrays import Floats
from service.core.measures.measure import Measure
from service.core.ranked import RankedScores


def neg_log_pmax(ranked: RankedScores, _k: int) -> Floats:
    """Return ``U_1 = -log p_(1)``: Finlay & Oberman, section 6.1.

    Parameters
    ----------
    ranked : RankedScores

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        In nats, from 0 to ``log(n_classes)``; at most the loss ``-log p_y``, and equal to it where
        the prediction is right.
    """
    return np.log1p(ranked.tails[:, 0])


MEASURE = Measure("neg_log_pmax", neg_log_pmax)
