"""Intervals for the probability of a bin, by name."""

from dataclasses import dataclass

from service.core.arrays import Rates
from service.core.intervals.beta import beta
from service.core.intervals.binomial import BinomialSample, Interval
from service.core.intervals.clopper_pearson import clopper_pearson
from service.core.intervals.hoeffding import hoeffding
from service.core.intervals.jeffreys import jeffreys
from service.core.intervals.wilson import wilson

__all__ = ["INTERVALS", "BinomialSample", "Interval", "IntervalOptions", "binomial_interval"]

INTERVALS: dict[str, Interval] = {
    "clopper_pearson": clopper_pearson,
    "hoeffding": hoeffding,
    "beta": beta,
    "jeffreys": jeffreys,
    "wilson": wilson,
}


@dataclass(frozen=True)
class IntervalOptions:
    """Which interval a bin table gives.

    Attributes
    ----------
    method : str
        A name in `INTERVALS`.
    level : float
        Probability that an interval holds the truth, in (0, 1).
    simultaneous : bool
        Whether ``level`` is that of all bins together, by Bonferroni's inequality.

    Raises
    ------
    ValueError
        If there is no such method, or ``level`` is out of range.
    """

    method: str = "clopper_pearson"
    level: float = 0.95
    simultaneous: bool = False

    def __post_init__(self) -> None:
        if self.method not in INTERVALS:
            raise ValueError(
                f"interval method must be one of {', '.join(INTERVALS)}, not {self.method!r}"
            )
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"interval level must lie in (0, 1), not {self.level}")


def binomial_interval(sample: BinomialSample, options: IntervalOptions) -> tuple[Rates, Rates]:
    """Return the interval of each bin.

    ``simultaneous`` divides ``delta = 1 - level`` by the number of bins.

    Returns
    -------
    lower, upper : ndarray of float64, shape (n_bins,)
    """
    delta = 1.0 - options.level
    if options.simultaneous:
        delta /= len(sample.counts)
    return INTERVALS[options.method](sample, 1.0 - delta)
