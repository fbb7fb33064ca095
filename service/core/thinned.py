"""Points of a curve that are enough to draw it."""

import numpy as np

from service.core.arrays import Counts

MOST_POINTS = 200


def thinned(n_points: int, most: int = MOST_POINTS) -> Counts:
    """Return positions of at most ``most`` points, evenly spaced, the two ends among them.

    Parameters
    ----------
    n_points : int
    most : int
        At least 2.
    """
    if n_points <= most:
        return np.arange(n_points, dtype=np.int64)
    return np.rint(np.linspace(0, n_points - 1, most)).astype(np.int64)
