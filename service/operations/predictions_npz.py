"""Predictions as an .npz archive."""

from io import BytesIO

import numpy as np

from service.operations.prediction_arrays import Arrays


def predictions_npz(arrays: Arrays) -> bytes:
    """Return the arrays of `prediction_arrays`, stored without compression."""
    packed = BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    return packed.getvalue()
