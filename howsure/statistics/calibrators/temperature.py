"""Temperature scaling, from the stored grid of temperatures."""

import numpy as np
import scipy  # its parts are imported when first used
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats, mean_over
from howsure.statistics.bins.edges import UNDERFLOW
from howsure.statistics.records.records import TEMPERATURES, USUAL

# Interpolation makes several copies of the grid of as many samples.
BLOCK_ROWS = 2**16
WITHIN = 1.001  # of an end of the usual temperatures: the best may lie beyond


def fit_temperature(
    log_sum_exp: NDArray[np.float32], label_logit: NDArray[np.float32], weights: Floats
) -> float:
    """Return the temperature of least mean ``log sum exp((z - z_(1)) / T) - (z_y - z_(1)) / T``.

    That is the multiclass negative log-likelihood: Guo et al. 2017, section 4.2. The mean of the
    first term is stored at 40 temperatures. Its logarithm is interpolated by monotone cubics in
    log T, between the usual 24 unless the best lies beyond them. The search is limited to the grid,
    so predictions that are always right get the lowest temperature and not 0. Rows whose label has
    probability 0 are left out, because their loss is infinite at every temperature. The result is 1
    if no row is left.

    Parameters
    ----------
    log_sum_exp : ndarray of float32, shape (n_samples, n_temperatures)
    label_logit : ndarray of float32, shape (n_samples,)
        As in `Records`.
    weights : ndarray of float64, shape (n_samples,)
        How much each sample counts.
    """
    possible = np.isfinite(label_logit)
    if not possible.any():
        return 1.0
    weights = weights[possible]
    mean_logit = float(mean_over(label_logit[possible].astype(np.float64), weights))
    grid = mean_over(log_sum_exp[possible], weights)
    usual = _least_loss(grid[:USUAL], mean_logit)
    is_inside = TEMPERATURES[0] * WITHIN < usual < TEMPERATURES[USUAL - 1] / WITHIN
    return usual if is_inside else _least_loss(grid, mean_logit)


def _least_loss(grid: Floats, mean_logit: float) -> float:
    """Return the temperature of least loss among those of the grid and between them."""
    columns = np.argsort(TEMPERATURES[: len(grid)])
    log_normaliser = _monotone(grid[columns], columns)

    def loss(log_temperature: float) -> float:
        return float(
            np.exp(log_normaliser(log_temperature)) - mean_logit * np.exp(-log_temperature)
        )

    ends = log_normaliser.x[0], log_normaliser.x[-1]
    least = scipy.optimize.minimize_scalar(
        loss, bounds=ends, method="bounded", options={"xatol": 1e-8}
    )
    return float(np.exp(least.x))


def scaled_neg_log_mass(
    log_sum_exp: NDArray[np.float32], top_logits: NDArray[np.float32], temperature: float
) -> Floats:
    """Return ``-log`` of the mass of the ``k`` top classes after scaling, shape (n_samples,).

    It is computed at the temperatures of the grid and then interpolated: a difference of two
    interpolated logarithms would lose its relative precision for a mass next to 1. For ``k > 1``
    masses closer to 1 than about 1e-7 are indistinguishable.

    Parameters
    ----------
    log_sum_exp : ndarray of float32, shape (n_samples, n_temperatures)
    top_logits : ndarray of float32, shape (n_samples, k)
        As in `Records`.
    temperature : float
    """
    # The usual temperatures are closer to one another than the others.
    is_usual = TEMPERATURES[0] <= temperature <= TEMPERATURES[USUAL - 1]
    columns = np.argsort(TEMPERATURES[: USUAL if is_usual else None])
    # A monotone cubic depends on the two nodes of its interval and one beside each.
    right = max(int(np.searchsorted(TEMPERATURES[columns], temperature)), 1)
    columns = columns[max(right - 2, 0) : right + 2]
    mass = np.empty(len(log_sum_exp))
    for start in range(0, len(log_sum_exp), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        grid = log_sum_exp[rows, columns].astype(np.float64)
        if top_logits.shape[1] > 1:
            top = top_logits[rows].astype(np.float64)
            for place, node in enumerate(TEMPERATURES[columns]):
                grid[:, place] -= scipy.special.logsumexp(top / node, axis=1)
        mass[rows] = np.exp(_monotone(grid, columns)(np.log(temperature)))
    return mass


def _monotone(grid: Floats, columns: NDArray[np.integer]) -> "scipy.interpolate.PchipInterpolator":
    """Interpolate the logarithm of values at some temperatures, the last axis, in log T."""
    logarithms = np.log(np.maximum(grid, float(UNDERFLOW)))
    return scipy.interpolate.PchipInterpolator(np.log(TEMPERATURES[columns]), logarithms, axis=-1)
