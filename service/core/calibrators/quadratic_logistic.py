"""Quadratic logistic regression on the log-odds of the top classes' mass."""

import numpy as np
from scipy.special import expit

from service.core.arrays import BinIndex, Floats
from service.core.calibrators.calibrator import Calibrator, Confidence, Fitted
from service.core.calibrators.logistic import fit_logistic
from service.core.calibrators.top_mass import log_odds
from service.core.records import Records


def fit_quadratic_logistic(records: Records, k: int, rows: BinIndex) -> Fitted:
    """Fit ``log-odds = c + a x + b x^2``, with ``x = log(s / (1 - s))``.

    ``s`` is the mass of the ``k`` top classes; with ``b = 0`` it is Platt's scaling (Platt 1999).
    On ``-log s`` itself the quadratic fits worse by a tenth. The parabola may turn, so that
    the most certain samples rank lower.
    """
    fitted = fit_logistic(_features(records, k)[rows], records.hits(k)[rows])

    def predict(records: Records) -> Confidence:
        said = fitted.log_odds(_features(records, k))
        return Confidence(probability=expit(said), uncertainty=-said)

    a, b = fitted.slopes.tolist()
    return Fitted(predict, {"a": a, "b": b, "c": fitted.intercept})


def _features(records: Records, k: int) -> Floats:
    x = log_odds(records, k)
    return np.stack([x, np.square(x)], axis=1)


CALIBRATOR = Calibrator(
    "quadratic_logistic",
    "logistic regression on the log-odds of the mass of the top classes and their square",
    fit_quadratic_logistic,
)
