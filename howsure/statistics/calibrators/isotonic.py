"""Isotonic regression."""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported when first used

from howsure.statistics.arrays import Floats, Hits, Rates


@dataclass(frozen=True, eq=False)
class IsotonicFit:
    """A rising function: linear between its points, and constant beyond the outer two.

    Attributes
    ----------
    points, values : ndarray of float64, shape (n_points,)
        Values lie in [0, 1] and may be 0 and 1.
    """

    points: Floats
    values: Rates

    def probability(self, x: Floats) -> Rates:
        """Return the probability of a hit, shape (n_samples,)."""
        return np.interp(x, self.points, self.values)


def fit_isotonic(x: Floats, hits: Hits, weights: Floats) -> IsotonicFit:
    """Fit the rising function of least squares: Zadrozny & Elkan 2002.

    Samples of equal ``x`` are one point, of their hit rate. ``weights`` say how much each sample
    counts.
    """
    points, which = np.unique(x, return_inverse=True)
    counts = np.bincount(which, weights)
    rates = np.bincount(which, hits * weights) / counts
    fitted = scipy.optimize.isotonic_regression(rates, weights=counts).x
    return IsotonicFit(points, np.clip(fitted, 0.0, 1.0))
