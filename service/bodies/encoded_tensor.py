"""Arrays in JSON as their own bytes: ``{"b64": "…", "dtype": "float32", "shape": [1, 64]}``."""

import math
from collections.abc import Mapping
from typing import Literal

import msgspec
import numpy as np

from service.bodies.request import Array
from service.bodies.tensors import check_shape
from service.errors import InvalidInput, shown

DType = Literal[
    "bool",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


class EncodedTensor(msgspec.Struct, forbid_unknown_fields=True):
    """An array, row-major and little-endian, its bytes in standard base64 with padding."""

    b64: bytes
    dtype: DType
    shape: list[int]


_decoder = msgspec.json.Decoder(EncodedTensor)


def is_encoded(parts: Mapping[str, msgspec.Raw]) -> bool:
    """Tell whether an object is an encoded array; of a model's inputs none is a string."""
    return "b64" in parts and bytes(parts["b64"]).startswith(b'"')


def read_encoded(text: bytes, *, location: str, max_rows: int) -> Array:
    """Return the array.

    Raises
    ------
    InvalidInput
        If a field is missing, unknown or of the wrong type, or the bytes are not as many as dtype
        and shape need.
    TooLarge
        If there are more rows than is allowed.
    """
    try:
        found = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput.at(location, shown(str(error))[1:-1]) from error
    if any(length < 0 for length in found.shape):
        raise InvalidInput.at(f"{location}.shape", f"expected no negative length: {found.shape}")
    check_shape(found.shape, location=location, max_rows=max_rows)
    dtype = np.dtype(found.dtype)
    needed = math.prod(found.shape) * dtype.itemsize
    if len(found.b64) != needed:
        raise InvalidInput.at(
            f"{location}.b64",
            f"expected {needed} bytes, shape {found.shape} of {found.dtype}, got {len(found.b64)}",
        )
    values = np.frombuffer(found.b64, dtype.newbyteorder("<")).reshape(found.shape)
    return values.astype(dtype, copy=False)
