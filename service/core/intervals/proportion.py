"""The exact interval of a single proportion."""

import numpy as np

from service.core.bins.prior import BetaPrior
from service.core.intervals.binomial import BinomialSample
from service.core.intervals.clopper_pearson import clopper_pearson


def proportion_interval(part: int, whole: int, level: float) -> tuple[float, float]:
    """Return the interval of Clopper & Pearson (1934) for ``part`` out of ``whole``, at least 1."""
    sample = BinomialSample(np.array([part]), np.array([whole]), BetaPrior(0.5))
    lower, upper = clopper_pearson(sample, level)
    return float(lower[0]), float(upper[0])
