"""Log-sum-exp on a grid of temperatures: what temperature scaling needs to know of the logits."""

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import Floats
from service.core.ranked import RankedScores

TEMPERATURES: Floats = np.geomspace(0.25, 8.0, 24)


def log_sum_exp_grid(ranked: RankedScores) -> NDArray[np.float32]:
    """Return ``log sum_i exp((z_i - z_(1)) / T)`` for each ``T`` in `TEMPERATURES`.

    Relative to the top logit, so that adding a constant to a row changes nothing and the value is
    never negative; the top class is left out of the sum and added by ``log1p``, so that small
    values keep their digits. Computed in float32, one temperature at a time in one buffer.

    Returns
    -------
    ndarray of float32, shape (n_samples, 24)
    """
    with np.errstate(over="ignore"):  # beyond float32's range: -inf, whose weight is 0 as well
        relative = ranked.relative.astype(np.float32)
    np.put_along_axis(relative, ranked.top_classes[:, :1], -np.inf, axis=1)
    buffer = np.empty_like(relative)
    grid = np.empty((len(relative), len(TEMPERATURES)), dtype=np.float32)
    for index, temperature in enumerate(TEMPERATURES.astype(np.float32)):
        with np.errstate(over="ignore"):
            np.divide(relative, temperature, out=buffer)
        np.exp(buffer, out=buffer)
        grid[:, index] = np.log1p(buffer.sum(axis=1))
    return grid
