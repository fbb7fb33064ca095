"""The interval of Hoeffding's inequality."""

import numpy as np

from service.core.arrays import Rates
from service.core.intervals.binomial import BinomialSample


def hoeffding(sample: BinomialSample, level: float) -> tuple[Rates, Rates]:
    """Return ``k/n -+ sqrt(log(2 / delta) / (2 n))``, clipped to [0, 1]: Oberman et al., eq. (4).

    With ``delta = 1 - level``. It covers at least ``level`` whatever the true probability, and is
    wide for it. Everything, [0, 1], where ``n`` is 0.

    Returns
    -------
    lower, upper : ndarray of float64, shape (n_bins,)
    """
    counts = np.maximum(sample.counts, 1)
    rates = sample.hits / counts
    half_width = np.where(
        sample.counts > 0, np.sqrt(np.log(2.0 / (1.0 - level)) / (2.0 * counts)), np.inf
    )
    return np.clip(rates - half_width, 0.0, 1.0), np.clip(rates + half_width, 0.0, 1.0)
