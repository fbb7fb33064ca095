"""Isotonic regression on the log-odds of the top classes' mass."""

import numpy as np
import scipy  # whose parts are imported when first used

from service.core.arrays import BinIndex
from service.core.calibrators.calibrator import Calibrator, Confidence, Fitted
from service.core.calibrators.top_mass import log_odds
from service.core.records import Records


def fit_isotonic(records: Records, k: int, rows: BinIndex) -> Fitted:
    """Fit the rising function of least squares: Zadrozny & Elkan 2002.

    Of ``x = log(s / (1 - s))``, ``s`` the mass of the ``k`` top classes. Samples of equal ``x`` are
    one point, of their hit rate; between points it is linear in ``x``, and constant beyond the
    outer two. Its probabilities may be 0 and 1.
    """
    points, which = np.unique(log_odds(records, k)[rows], return_inverse=True)
    counts = np.bincount(which)
    rates = np.bincount(which, weights=records.hits(k)[rows]) / counts
    fitted = np.clip(scipy.optimize.isotonic_regression(rates, weights=counts).x, 0.0, 1.0)

    def predict(records: Records) -> Confidence:
        probability = np.interp(log_odds(records, k), points, fitted)
        return Confidence(probability=probability, uncertainty=-probability)

    return Fitted(predict)


CALIBRATOR = Calibrator(
    "isotonic",
    "the rising function of the log-odds of the mass of the top classes nearest to the hits",
    fit_isotonic,
)
