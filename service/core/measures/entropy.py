"""Entropy of the softmax."""

import numpy as np

from service.core.arrays import Floats
from service.core.measures.measure import Measure
from service.core.ranked import RankedScores


def entropy(ranked: RankedScores, _k: int) -> Floats:
    """Return ``-sum_i p_i log p_i``, with ``0 log 0 = 0``: Finlay & Oberman, section 6.1.

    As ``log p_i = z_i - z_(1) - U_1``, it is ``U_1 + sum_i p_i (z_(1) - z_i)``: terms that are
    never negative, so nothing cancels.

    Parameters
    ----------
    ranked : RankedScores

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        In nats, from 0 to ``log(n_classes)``.
    """
    # A weight of 0 may stand beside a relative logit of -inf.
    terms = np.zeros_like(ranked.weights)
    np.multiply(ranked.weights, ranked.relative, out=terms, where=ranked.weights > 0.0)
    spread: Floats = terms.sum(axis=1) / ranked.total
    return np.log1p(ranked.tails[:, 0]) - spread


MEASURE = Measure("entropy", entropy)
