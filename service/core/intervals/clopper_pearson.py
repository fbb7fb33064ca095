"""The exact binomial interval."""

import numpy as np
from scipy.special import betaincinv

from service.core.arrays import Rates
from service.core.intervals.binomial import BinomialSample


def clopper_pearson(sample: BinomialSample, level: float) -> tuple[Rates, Rates]:
    """Return the exact interval of Clopper & Pearson (1934).

    With ``delta = 1 - level``: the ``delta / 2`` quantile of Beta(k, n - k + 1) and the
    ``1 - delta / 2`` quantile of Beta(k + 1, n - k); 0 at ``k = 0`` and 1 at ``k = n``. It covers
    at least ``level`` whatever the true probability.

    Returns
    -------
    lower, upper : ndarray of float64, shape (n_bins,)
    """
    tail = (1.0 - level) / 2.0
    hits, misses = sample.hits, sample.counts - sample.hits
    # maximum() only keeps the unused branch free of a parameter of 0.
    lower = np.where(hits > 0, betaincinv(np.maximum(hits, 1), misses + 1, tail), 0.0)
    upper = np.where(misses > 0, betaincinv(hits + 1, np.maximum(misses, 1), 1.0 - tail), 1.0)
    return lower, upper
