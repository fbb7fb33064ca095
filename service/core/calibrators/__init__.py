"""The calibrators that every report sets beside the bin tables, by name."""

from service.core.calibrators import (
    beta_calibration,
    constant,
    isotonic,
    quadratic_logistic,
    raw_softmax,
    temperature,
)
from service.core.calibrators.calibrator import Calibrator, Confidence, Fitted

__all__ = ["CALIBRATORS", "Calibrator", "Confidence", "Fitted"]

CALIBRATORS: dict[str, Calibrator] = {
    calibrator.name: calibrator
    for calibrator in (
        raw_softmax.CALIBRATOR,
        temperature.CALIBRATOR,
        beta_calibration.CALIBRATOR,
        quadratic_logistic.CALIBRATOR,
        isotonic.CALIBRATOR,
        constant.CALIBRATOR,
    )
}
