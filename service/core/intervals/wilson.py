"""The score interval."""

import numpy as np
from scipy.special import ndtri

from service.core.arrays import Rates
from service.core.intervals.binomial import BinomialSample


def wilson(sample: BinomialSample, level: float) -> tuple[Rates, Rates]:
    """Return the score interval of Wilson (1927): approximate coverage.

    ``(k + z^2/2 -+ z sqrt(k (n - k) / n + z^2/4)) / (n + z^2)`` with ``z`` the normal quantile:
    0 at ``k = 0`` and 1 at ``k = n``. It may cover less than ``level``: .82 of a nominal .90 at 50
    bins of 20.

    Returns
    -------
    lower, upper : ndarray of float64, shape (n_bins,)
    """
    hits, counts = sample.hits, sample.counts
    z = float(ndtri(0.5 + level / 2.0))
    spread = z * np.sqrt(hits * (counts - hits) / np.maximum(counts, 1) + z * z / 4.0)
    centre, width = hits + z * z / 2.0, counts + z * z
    # The ends are exact in theory; only rounding puts them next to 0 and 1.
    lower = np.where(hits > 0, (centre - spread) / width, 0.0)
    upper = np.where(hits < counts, (centre + spread) / width, 1.0)
    return lower, upper
