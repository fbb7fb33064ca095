"""The accuracy of the event, for everyone."""

import numpy as np

from service.core.arrays import BinIndex
from service.core.calibrators.calibrator import Calibrator, Confidence, Fitted
from service.core.records import Records


def fit_constant(records: Records, k: int, rows: BinIndex) -> Fitted:
    """Return the share of hits among the rows, whatever the sample: the score to be beaten."""
    accuracy = float(np.mean(records.hits(k)[rows]))

    def predict(records: Records) -> Confidence:
        return Confidence(
            probability=np.full(records.n_samples, accuracy),
            uncertainty=np.zeros(records.n_samples),
        )

    return Fitted(predict, {"accuracy": accuracy})


CALIBRATOR = Calibrator("constant", "the share of hits, said of every sample alike", fit_constant)
