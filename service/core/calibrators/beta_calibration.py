"""Beta calibration."""

import numpy as np
from scipy.special import expit

from service.core.arrays import BinIndex, Floats
from service.core.calibrators.calibrator import Calibrator, Confidence, Fitted
from service.core.calibrators.logistic import LogisticFit, fit_logistic
from service.core.calibrators.top_mass import log_rest, neg_log_mass
from service.core.records import Records


def fit_beta_calibration(records: Records, k: int, rows: BinIndex) -> Fitted:
    """Fit ``log-odds = c + a log s - b log(1 - s)`` with ``a, b >= 0``: Kull et al. 2017, eq. (3).

    ``s`` is the mass of the ``k`` top classes. A slope that comes out negative is set to 0 and the
    rest fitted again, as the authors do.
    """
    fitted = _not_falling(_features(records, k)[rows], records, k, rows)

    def predict(records: Records) -> Confidence:
        log_odds = fitted.log_odds(_features(records, k))
        return Confidence(probability=expit(log_odds), uncertainty=-log_odds)

    a, b = fitted.slopes.tolist()
    return Fitted(predict, {"a": a, "b": b, "c": fitted.intercept})


def _features(records: Records, k: int) -> Floats:
    return np.stack([-neg_log_mass(records, k), -log_rest(records, k)], axis=1)


def _not_falling(features: Floats, records: Records, k: int, rows: BinIndex) -> LogisticFit:
    hits = records.hits(k)[rows]
    kept = np.ones(2, dtype=np.bool_)
    while True:
        fitted = fit_logistic(features[:, kept], hits)
        slopes = np.zeros(2)
        slopes[kept] = fitted.slopes
        if (slopes >= 0.0).all():
            return LogisticFit(fitted.intercept, slopes)
        kept &= slopes >= 0.0


CALIBRATOR = Calibrator(
    "beta_calibration",
    "beta calibration of the mass s of the top classes: log-odds c + a log s - b log(1 - s)",
    fit_beta_calibration,
)
