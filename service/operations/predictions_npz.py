"""Predictions as an .npz archive."""

from io import BytesIO

import numpy as np

from service.operations.predict import PredictionBatch
from service.operations.prediction_arrays import prediction_arrays


def predictions_npz(batch: PredictionBatch) -> bytes:
    """Return the arrays of `prediction_arrays`, stored without compression."""
    packed = BytesIO()
    np.savez(packed, allow_pickle=False, **prediction_arrays(batch))
    return packed.getvalue()
