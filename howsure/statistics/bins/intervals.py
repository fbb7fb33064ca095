"""Intervals of binomial proportions: ``f(hits, counts, level)`` gives both ends, bin by bin.

``hits`` and ``counts`` are of shape (n_bins,), ``0 <= hits <= counts``: int64, or float64 where
samples count for more or less than one (Korn & Graubard 1998). The ends are float64 of the same
shape.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtri

from howsure.statistics.arrays import Counts, Floats, Rates
from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.effective import EffectiveShare


def clopper_pearson(
    hits: Counts | Floats, counts: Counts | Floats, level: float
) -> tuple[Rates, Rates]:
    """Return the exact interval of Clopper & Pearson (1934).

    With ``delta = 1 - level``: the ``delta / 2`` quantile of Beta(k, n - k + 1) and the
    ``1 - delta / 2`` quantile of Beta(k + 1, n - k); 0 at ``k = 0`` and 1 at ``k = n``. It covers
    at least ``level`` for every true probability.
    """
    tail, misses = (1.0 - level) / 2.0, counts - hits
    # 1 avoids a parameter of 0 in the branch that where() discards.
    some, missed = np.where(hits > 0, hits, 1), np.where(misses > 0, misses, 1)
    lower = np.where(hits > 0, betaincinv(some, misses + 1, tail), 0.0)
    upper = np.where(misses > 0, betaincinv(hits + 1, missed, 1.0 - tail), 1.0)
    return lower, upper


def hoeffding(hits: Counts | Floats, counts: Counts | Floats, level: float) -> tuple[Rates, Rates]:
    """Return ``k/n -+ sqrt(log(2 / delta) / (2 n))``, clipped to [0, 1]: Oberman et al., eq. (4).

    With ``delta = 1 - level``. It covers at least ``level`` for every true probability, and is
    wide. It is [0, 1] if ``n`` is 0.
    """
    at_least_one = np.where(counts > 0, counts, 1)
    rates = hits / at_least_one
    half_width = np.where(
        counts > 0, np.sqrt(np.log(2.0 / (1.0 - level)) / (2.0 * at_least_one)), np.inf
    )
    return np.clip(rates - half_width, 0.0, 1.0), np.clip(rates + half_width, 0.0, 1.0)


def jeffreys(hits: Counts | Floats, counts: Counts | Floats, level: float) -> tuple[Rates, Rates]:
    """Return equal-tailed quantiles of Beta(k + 1/2, n - k + 1/2): approximate coverage.

    0 at ``k = 0`` and 1 at ``k = n``: Brown, Cai & DasGupta (2001), section 3.1.3.
    """
    tail, misses = (1.0 - level) / 2.0, counts - hits
    lower = np.where(hits > 0, betaincinv(hits + 0.5, misses + 0.5, tail), 0.0)
    upper = np.where(misses > 0, betaincinv(hits + 0.5, misses + 0.5, 1.0 - tail), 1.0)
    return lower, upper


def wilson(hits: Counts | Floats, counts: Counts | Floats, level: float) -> tuple[Rates, Rates]:
    """Return the score interval of Wilson (1927): approximate coverage.

    ``(k + z^2/2 -+ z sqrt(k (n - k) / n + z^2/4)) / (n + z^2)`` with ``z`` the normal quantile:
    0 at ``k = 0`` and 1 at ``k = n``. It may cover less than ``level``: .82 of a nominal .90 at 50
    bins of 20.
    """
    z = float(ndtri(0.5 + level / 2.0))
    spread = z * np.sqrt(hits * (counts - hits) / np.where(counts > 0, counts, 1) + z * z / 4.0)
    centre, width = hits + z * z / 2.0, counts + z * z
    # The ends are exact in theory; only rounding puts them next to 0 and 1.
    lower = np.where(hits > 0, (centre - spread) / width, 0.0)
    upper = np.where(hits < counts, (centre + spread) / width, 1.0)
    return lower, upper


def beta(
    hits: Counts | Floats, counts: Counts | Floats, level: float, prior: BetaPrior
) -> tuple[Rates, Rates]:
    """Return equal-tailed quantiles of the posterior Beta(k + m p_A, n - k + m (1 - p_A)).

    The posterior's mean is the served probability: Oberman et al., section 6.1.
    """
    tail = (1.0 - level) / 2.0
    a, b = hits + prior.alpha, counts - hits + prior.beta
    return betaincinv(a, b, tail), betaincinv(a, b, 1.0 - tail)


def proportion_interval(
    part: float, whole: float, level: float, effective: EffectiveShare | None = None
) -> tuple[float, float]:
    """Return the interval of Clopper & Pearson (1934) for ``part`` out of ``whole``, at least 1.

    With weights or groups, that of their ``effective`` share: Korn & Graubard 1998.
    """
    if effective is not None:
        whole = effective.in_tail((1.0 - level) / 2.0)
        part = effective.share * whole
    lower, upper = clopper_pearson(np.array([float(part)]), np.array([float(whole)]), level)
    return float(lower[0]), float(upper[0])


# All take hits, counts and level; ``beta`` takes the prior as well.
INTERVALS: dict[str, Callable[..., tuple[Rates, Rates]]] = {
    "clopper_pearson": clopper_pearson,
    "hoeffding": hoeffding,
    "beta": beta,
    "jeffreys": jeffreys,
    "wilson": wilson,
}


@dataclass(frozen=True)
class IntervalOptions:
    """The interval of a bin table.

    Attributes
    ----------
    method : str
        A name in `INTERVALS`.
    level : float
        Probability that an interval contains the true value, in (0, 1).
    simultaneous : bool
        Whether ``level`` applies to all bins together, by Bonferroni's inequality.

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

    def level_of_each(self, n_bins: int) -> float:
        """Return the level of each of ``n_bins`` intervals."""
        delta = 1.0 - self.level
        return 1.0 - (delta / n_bins if self.simultaneous else delta)


def binomial_interval(
    hits: Counts | Floats,
    counts: Counts | Floats,
    prior: BetaPrior,
    options: IntervalOptions,
    *,
    n_bins: int | None = None,
) -> tuple[Rates, Rates]:
    """Return the lower and upper ends of the interval of each bin, shape (n_bins,).

    Parameters
    ----------
    hits, counts : ndarray of int64 or float64, shape (n_bins,)
    prior : BetaPrior
    options : IntervalOptions
    n_bins : int, optional
        Number of bins that share a simultaneous level; by default ``len(counts)``.
    """
    level = options.level_of_each(len(counts) if n_bins is None else n_bins)
    method = INTERVALS[options.method]
    if method is beta:
        return beta(hits, counts, level, prior)
    return method(hits, counts, level)
