"""Points of a curve that are enough to draw it."""

import numpy as np

from service.core.arrays import Counts, Rates

MOST_POINTS = 200


def thinned(progress: Rates, most: int = MOST_POINTS) -> Counts:
    """Return positions of at most ``most`` points, evenly far along, the two ends among them.

    Parameters
    ----------
    progress : ndarray of float64, shape (n_points,)
        How far along the curve each point lies: never falling.
    most : int
        At least 2.
    """
    n_points = len(progress)
    if n_points <= most:
        return np.arange(n_points, dtype=np.int64)
    wanted = np.linspace(progress[0], progress[-1], most)
    found = np.searchsorted(progress, wanted[1:-1], side="left")
    return np.unique(np.concatenate([[0], found, [n_points - 1]])).astype(np.int64, copy=False)
