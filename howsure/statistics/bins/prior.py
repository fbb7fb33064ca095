"""The prior of hit rates, and regularised hit rates."""

from dataclasses import dataclass

import numpy as np

from howsure.statistics.arrays import Counts, Floats, Hits, Rates
from howsure.statistics.effective import EffectiveBins


def odds_ratio(probability: Rates, accuracy: float) -> Rates:
    """Return ``OR(p, a) = max(O(p) / O(a), O(a) / O(p))``, with ``O(p) = p / (1 - p)``.

    By how much the odds move, up or down, from ``a`` to ``p``: Finlay & Oberman's expected odds
    ratio averages it over bins.

    Parameters
    ----------
    probability : ndarray of float64, shape (n_bins,)
        In (0, 1).
    accuracy : float
        In (0, 1).

    Returns
    -------
    ndarray of float64, shape (n_bins,)
        At least 1, the value at ``p = a``.
    """
    ratio = probability * (1.0 - accuracy) / ((1.0 - probability) * accuracy)
    return np.maximum(ratio, 1.0 / ratio)


@dataclass(frozen=True)
class BetaPrior:
    """Beta prior worth ``strength`` samples at the event's overall accuracy.

    Attributes
    ----------
    accuracy : float
        ``p_A``, the prior mean, in (0, 1).
    strength : float
        ``m``, above 0: the number of samples the prior counts for.
    degenerate : bool
        Whether the event always or never happened, so that ``accuracy`` is a stand-in.

    Raises
    ------
    ValueError
        If ``accuracy`` or ``strength`` is out of range.
    """

    accuracy: float
    strength: float = 1.0
    degenerate: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.accuracy < 1.0:
            raise ValueError(f"accuracy must lie in (0, 1), not {self.accuracy}")
        if not 0.0 < self.strength < np.inf:
            raise ValueError(f"prior_strength must be positive and finite, not {self.strength}")

    @property
    def alpha(self) -> float:
        """Pseudo-hits, ``m p_A``."""
        return self.strength * self.mean

    @property
    def beta(self) -> float:
        """Pseudo-misses, ``m (1 - p_A)``."""
        return self.strength * (1.0 - self.mean)

    @property
    def mean(self) -> float:
        """The rate that hit rates are shrunk towards: ``p_A``, or 1/2 if it is a stand-in.

        With half a hit and half a miss, 1,000 hits of 1,000 give .9995. Towards the stand-in, which
        is shrunk already, they would give .9999995.
        """
        return 0.5 if self.degenerate else self.accuracy


LEAST_SHARE = 1e-12


def fit_prior(
    hits: Hits, strength: float = 1.0, effective: EffectiveBins | None = None
) -> BetaPrior:
    """Return the prior centred on the accuracy of the event over the calibration set.

    Where the event always or never happens, the accuracy is taken as ``(k + 1/2) / (n + 1)``, so
    that odds stay finite, and the prior says so (``degenerate``).

    Parameters
    ----------
    hits : ndarray of bool, shape (n_samples,)
        At least one.
    strength : float
    effective : EffectiveBins, optional
        If samples have weights, the accuracy is weighted and ``n`` is their effective number.

    Raises
    ------
    ValueError
        If ``strength`` is not positive.
    """
    accuracy, size = float(np.mean(hits)), float(hits.size)
    if effective is not None:
        accuracy, size = float(effective.shares @ effective.hit_rates), effective.size
    # Weights may leave a share of misses that rounds to nothing.
    is_degenerate = min(accuracy, 1.0 - accuracy) < LEAST_SHARE
    if is_degenerate:
        accuracy = (round(accuracy) * size + 0.5) / (size + 1.0)
    return BetaPrior(accuracy, strength, degenerate=is_degenerate)


def prior_mean(n_hits: Counts, n_samples: int) -> Rates:
    """Return `BetaPrior.mean` of events with these hits, of any shape."""
    is_certain = (n_hits == 0) | (n_hits == n_samples)
    return np.where(is_certain, 0.5, n_hits / n_samples)


def posterior_mean(hits: Counts | Floats, counts: Counts | Floats, prior: BetaPrior) -> Rates:
    """Return the regularised hit rate ``(k + m p_A) / (n + m)``: Oberman et al., section 6.1.

    It is the mean of ``Beta(k + m p_A, n - k + m (1 - p_A))``, with 1/2 for ``p_A`` if the event
    always or never happens.

    Parameters
    ----------
    hits, counts : ndarray of int64, or float64 if effective, shape (n_bins,)
        ``0 <= hits <= counts``.

    Returns
    -------
    ndarray of float64, shape (n_bins,)
        In (0, 1); the prior mean where ``counts`` is 0.
    """
    return regularised_rate(hits, counts, prior.mean, prior.strength)


def regularised_rate(
    hits: Counts | Floats, counts: Counts | Floats, accuracy: Rates | float, strength: float
) -> Rates:
    """Return ``(k + m p_A) / (n + m)`` for arrays that broadcast."""
    return np.asarray((hits + strength * accuracy) / (counts + strength), dtype=np.float64)
