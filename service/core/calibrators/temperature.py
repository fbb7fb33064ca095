"""Temperature scaling, from the stored grid of temperatures."""

import numpy as np
import scipy  # whose parts are imported when first used

from service.core.arrays import BinIndex, Floats
from service.core.bins.edges import UNDERFLOW
from service.core.calibrators.calibrator import Calibrator, Confidence, Fitted
from service.core.records import TEMPERATURES, Records

LOG_TEMPERATURES = np.log(TEMPERATURES)
# Interpolating takes several copies of the grid of as many samples.
BLOCK_ROWS = 2**16


def fit_temperature(records: Records, k: int, rows: BinIndex) -> Fitted:
    """Fit one temperature by the multiclass negative log-likelihood: Guo et al. 2017, section 4.2.

    The same for every event; the probability of the Top-k event is the mass of the ``k`` top
    classes after scaling. Searched between the ends of the grid: labels that are always right
    would have it 0, and get the least instead. For ``k > 1`` masses within 1e-7 or so of 1 are not
    told apart.
    """
    temperature = best_temperature(records, rows)

    def predict(records: Records) -> Confidence:
        uncertainty = scaled_neg_log_mass(records, k, temperature)
        return Confidence(probability=np.exp(-uncertainty), uncertainty=uncertainty)

    return Fitted(predict, {"temperature": temperature})


def best_temperature(records: Records, rows: BinIndex) -> float:
    """Return the temperature of least mean ``log sum exp((z - z_(1)) / T) - (z_y - z_(1)) / T``.

    The mean of the first term is kept at 24 temperatures, and interpolated in between: its
    logarithm, by monotone cubics in log T. Rows whose label has probability 0 are lost at every
    temperature and left out; 1 where no row is left.
    """
    label_logit = records.label_logit[rows].astype(np.float64)
    possible = np.isfinite(label_logit)
    if not possible.any():
        return 1.0
    grid = records.log_sum_exp[rows[possible]].mean(axis=0, dtype=np.float64)
    log_normaliser = _monotone(grid)
    mean_logit = float(label_logit[possible].mean())

    def loss(log_temperature: float) -> float:
        return float(
            np.exp(log_normaliser(log_temperature)) - mean_logit * np.exp(-log_temperature)
        )

    found = scipy.optimize.minimize_scalar(
        loss,
        bounds=(LOG_TEMPERATURES[0], LOG_TEMPERATURES[-1]),
        method="bounded",
        options={"xatol": 1e-8},
    )
    return float(np.exp(found.x))


def scaled_neg_log_mass(records: Records, k: int, temperature: float) -> Floats:
    """Return ``-log`` of the mass of the ``k`` top classes after scaling, shape (n_samples,).

    Made at the grid's temperatures, and interpolated in between as a whole: a difference of two
    interpolated logarithms would be as wrong for a mass next to 1 as for any other.
    """
    found = np.empty(records.n_samples)
    for start in range(0, records.n_samples, BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        grid = records.log_sum_exp[rows].astype(np.float64)
        if k > 1:
            top = records.top_logits[rows, :k].astype(np.float64)
            for column, known in enumerate(TEMPERATURES):
                grid[:, column] -= np.log(np.exp(top / known).sum(axis=1))
        found[rows] = np.exp(_monotone(grid)(np.log(temperature)))
    return found


def _monotone(grid: Floats) -> "scipy.interpolate.PchipInterpolator":
    """Interpolate the logarithm of values at the grid's temperatures, the last axis, in log T."""
    logarithms = np.log(np.maximum(grid, float(UNDERFLOW)))
    return scipy.interpolate.PchipInterpolator(LOG_TEMPERATURES, logarithms, axis=-1)


CALIBRATOR = Calibrator(
    "temperature",
    "the softmax of the logits divided by one temperature, that of least multiclass loss",
    fit_temperature,
)
