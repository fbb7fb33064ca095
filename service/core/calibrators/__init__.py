"""The calibrators that every report sets beside the bin tables, by name."""

from service.core.calibrators import raw_softmax
from service.core.calibrators.calibrator import Calibrator, Confidence, Predict

__all__ = ["CALIBRATORS", "Calibrator", "Confidence", "Predict"]

CALIBRATORS: dict[str, Calibrator] = {
    calibrator.name: calibrator for calibrator in (raw_softmax.CALIBRATOR,)
}
