"""Calibration error without bins: smoothed by a kernel that chooses its own width."""

import numpy as np
import scipy  # its parts are imported when first used: half a second at the start of a command

from howsure.statistics.arrays import Floats, Rates
from howsure.statistics.scores.predictions import Predictions

N_CELLS = 2048


def smooth_ece(judged: Predictions) -> float:
    """Return the smooth calibration error: Błasiok & Nakkiran 2024, Definition 2.

    The residuals ``X - q`` are smoothed over q by a Gaussian reflected at 0 and 1, and their
    absolute value is integrated. The width of the Gaussian is chosen equal to the result, which is
    unique. The grid has 2,048 cells, so values below 0.0005 are not resolved.
    """
    shares = judged.weights * (judged.n_samples / judged.weights.sum())
    residuals = (judged.hits - judged.probability) * shares
    residuals = _residuals(judged.probability, residuals)
    if not residuals.any():
        return 0.0
    waves = scipy.fft.dct(residuals, norm="ortho")

    def excess(width: float) -> float:
        return _smoothed(waves, width) - width

    finest = 1.0 / N_CELLS
    if excess(finest) <= 0.0:
        return _smoothed(waves, finest)
    return float(scipy.optimize.brentq(excess, finest, 2.0, xtol=1e-14))


def _residuals(probability: Rates, residuals: Rates) -> Floats:
    """Return the mean residual on the grid; each is shared by the two nearest cell centres."""
    place = np.clip(probability * N_CELLS - 0.5, 0.0, N_CELLS - 1.0)
    left = np.minimum(place.astype(np.int64), N_CELLS - 2)
    share = place - left
    grid = np.bincount(left, weights=residuals * (1.0 - share), minlength=N_CELLS)
    grid += np.bincount(left + 1, weights=residuals * share, minlength=N_CELLS)
    return np.asarray(grid / len(probability), dtype=np.float64)


def _smoothed(waves: Floats, width: float) -> float:
    # Cosines are eigenfunctions of a Gaussian reflected at both ends: each is damped by a factor.
    frequency = np.pi * np.arange(N_CELLS)
    damped = waves * np.exp(-0.5 * np.square(width * frequency))
    return float(np.abs(scipy.fft.idct(damped, norm="ortho")).sum())
