"""Dataclasses with arrays in them, as one array of bytes.

For what this program itself has made: unlike fields, it has no bounds.
"""

from typing import Any, TypeVar

import msgspec
import numpy as np

from service.runner.messages.frames import Array

T = TypeVar("T")


def packed(message: object) -> Array:
    """Return a dataclass as bytes, every bit of its numbers kept."""
    return np.frombuffer(msgspec.msgpack.encode(message, enc_hook=_plain), np.uint8)


def unpacked(array: Array, kind: type[T]) -> T:
    """Return the dataclass of this type that `packed` wrote."""
    return msgspec.msgpack.decode(array.data, type=kind, dec_hook=_array)


def _plain(value: Any) -> object:  # noqa: ANN401 - of any type that msgspec has no form for
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return value.item()


def _array(_kind: object, value: Any) -> Array:  # noqa: ANN401 - of three types, which `_plain` returned
    dtype, shape, content = value
    return np.frombuffer(content, np.dtype(dtype)).reshape(shape)
