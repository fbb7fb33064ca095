"""The credible interval under Jeffreys' prior."""

import numpy as np
from scipy.special import betaincinv

from service.core.arrays import Rates
from service.core.intervals.binomial import BinomialSample


def jeffreys(sample: BinomialSample, level: float) -> tuple[Rates, Rates]:
    """Return equal-tailed quantiles of Beta(k + 1/2, n - k + 1/2): approximate coverage.

    0 at ``k = 0`` and 1 at ``k = n``: Brown, Cai & DasGupta (2001), section 3.1.3.

    Returns
    -------
    lower, upper : ndarray of float64, shape (n_bins,)
    """
    tail = (1.0 - level) / 2.0
    hits, misses = sample.hits, sample.counts - sample.hits
    lower = np.where(hits > 0, betaincinv(hits + 0.5, misses + 0.5, tail), 0.0)
    upper = np.where(misses > 0, betaincinv(hits + 0.5, misses + 0.5, 1.0 - tail), 1.0)
    return lower, upper
