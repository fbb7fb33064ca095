"""What an interval for a binomial proportion is made from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from service.core.arrays import Counts, Rates
from service.core.bins.prior import BetaPrior


@dataclass(frozen=True, eq=False)
class BinomialSample:
    """Hits out of counts, one pair per bin, and the prior of their probability.

    Attributes
    ----------
    hits, counts : ndarray of int64, shape (n_bins,)
        ``0 <= hits <= counts``.
    prior : BetaPrior
        Used by Bayesian methods alone.
    """

    hits: Counts
    counts: Counts
    prior: BetaPrior


Interval: TypeAlias = Callable[[BinomialSample, float], tuple[Rates, Rates]]
