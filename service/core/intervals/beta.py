"""The credible interval of the regularised probability."""

import numpy as np
from scipy.special import betaincinv

from service.core.arrays import Rates
from service.core.intervals.binomial import BinomialSample


def beta(sample: BinomialSample, level: float) -> tuple[Rates, Rates]:
    """Return equal-tailed quantiles of the posterior Beta(k + m p_A, n - k + m (1 - p_A)).

    The posterior's mean is the served probability: Oberman et al., section 6.1.

    Returns
    -------
    lower, upper : ndarray of float64, shape (n_bins,)
    """
    tail = (1.0 - level) / 2.0
    alpha = sample.hits + sample.prior.alpha
    beta_ = sample.counts - sample.hits + sample.prior.beta
    lower, upper = betaincinv(alpha, beta_, tail), betaincinv(alpha, beta_, 1.0 - tail)
    return np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
