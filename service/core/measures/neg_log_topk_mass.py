"""Minus the log of the mass of the k top classes."""

import numpy as np

from service.core.arrays import Floats
from service.core.measures.measure import Measure
from service.core.ranked import RankedScores


def neg_log_topk_mass(ranked: RankedScores, k: int) -> Floats:
    """Return ``U_k = -log sum_{i <= k} p_(i)``: Finlay & Oberman, section 6.1.

    Taken from the tail, ``log1p(tail / head)``: as ``-log(1 - tiny)`` every confident sample would
    have an uncertainty of exactly zero, and the ties would ruin quantile bins.

    Parameters
    ----------
    ranked : RankedScores
    k : int
        ``1 <= k <= m``.

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        In nats, from 0 to ``log(n_classes / k)``.
    """
    return np.log1p(ranked.tails[:, k - 1] / ranked.heads[:, k - 1])


MEASURE = Measure("neg_log_topk_mass", neg_log_topk_mass, per_event=True)
