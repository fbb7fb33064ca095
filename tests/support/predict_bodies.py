"""Bodies of POST /predict as clients write them."""

import base64
import io
from typing import Any

import httpx
import numpy as np

NPY = {"Content-Type": "application/x-npy"}
NPZ = {"Content-Type": "application/x-npz"}


def npy(array: np.ndarray) -> bytes:
    """Return what numpy.save writes."""
    packed = io.BytesIO()
    np.save(packed, array)
    return packed.getvalue()


def npz(*, compressed: bool = False, **arrays: np.ndarray) -> bytes:
    """Return what numpy.savez writes."""
    packed = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(packed, **arrays)
    return packed.getvalue()


def encoded(array: np.ndarray) -> dict[str, Any]:
    """Return an array as an object of JSON that holds its bytes."""
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    return {
        "b64": base64.b64encode(little.tobytes()).decode("ascii"),
        "dtype": array.dtype.name,
        "shape": list(array.shape),
    }


def send(
    client: httpx.Client, calibration: str, body: bytes, headers: dict[str, str]
) -> httpx.Response:
    """POST arrays as they are."""
    return client.post(
        "/predict", params={"calibration": calibration}, content=body, headers=headers
    )
