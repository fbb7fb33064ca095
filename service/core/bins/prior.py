"""The prior that regularises hit rates."""

from dataclasses import dataclass

import numpy as np

from service.core.arrays import Counts, Hits, Rates


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
        return self.strength * self.accuracy

    @property
    def beta(self) -> float:
        """Pseudo-misses, ``m (1 - p_A)``."""
        return self.strength * (1.0 - self.accuracy)


def fit_prior(hits: Hits, strength: float = 1.0) -> BetaPrior:
    """Return the prior centred on the accuracy of the event over the calibration set.

    Where the event always or never happens, the accuracy is taken as ``(k + 1/2) / (n + 1)``, so
    that odds stay finite, and the prior says so (``degenerate``).

    Parameters
    ----------
    hits : ndarray of bool, shape (n_samples,)
        At least one.
    strength : float

    Raises
    ------
    ValueError
        If there is no sample, or ``strength`` is not positive.
    """
    if hits.size == 0:
        raise ValueError("hits must hold at least one sample")
    n_hits = int(np.count_nonzero(hits))
    if n_hits in (0, hits.size):
        return BetaPrior((n_hits + 0.5) / (hits.size + 1.0), strength, degenerate=True)
    return BetaPrior(n_hits / hits.size, strength)


def posterior_mean(hits: Counts, counts: Counts, prior: BetaPrior) -> Rates:
    """Return the regularised hit rate ``(k + m p_A) / (n + m)``: Oberman et al., section 6.1.

    It is the mean of ``Beta(k + m p_A, n - k + m (1 - p_A))``.

    Parameters
    ----------
    hits, counts : ndarray of int64, shape (n_bins,)
        ``0 <= hits <= counts``.

    Returns
    -------
    ndarray of float64, shape (n_bins,)
        In (0, 1); the prior mean where ``counts`` is 0.
    """
    return np.asarray((hits + prior.alpha) / (counts + prior.strength), dtype=np.float64)
