"""Dataclasses as one array of bytes: of this program itself, or of a child that may lie."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
import numpy as np

from service.runner.messages.convert import FieldError, check_bounds
from service.runner.messages.frames import Array, code_of

# A little of it makes large objects: long lists of names go apart, with a type that bounds them.
MAX_PACKED_BYTES = 2**18
MAX_NAMES_BYTES = 2**22
MANY = msgspec.Meta(max_length=2**17)

T = TypeVar("T")


def packed(message: object) -> Array:
    """Return a dataclass as bytes, every bit of its numbers kept."""
    return np.frombuffer(msgspec.msgpack.encode(message, enc_hook=_plain), np.uint8)


def unpacked(array: Array, kind: type[T]) -> T:
    """Return the dataclass of this type that this program packed; its texts have no bounds."""
    return msgspec.msgpack.decode(array.data, type=kind, dec_hook=_array)


def checked(
    tensors: Mapping[str, Array], name: str, kind: type[T], *, most_bytes: int = MAX_PACKED_BYTES
) -> T:
    """Return the dataclass of this type that a child packed.

    Raises
    ------
    FieldError
        If it is missing, has another type, or exceeds its bounds or ``most_bytes``.
    """
    array = tensors.get(name)
    if array is None or array.nbytes > most_bytes:
        raise FieldError(f"{kind.__name__}: its bytes are missing, or too many")
    try:
        message = msgspec.msgpack.decode(array.tobytes(), type=kind)
        check_bounds(message)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise FieldError(f"{kind.__name__}: {error}") from error
    return message


def _plain(value: Any) -> object:  # noqa: ANN401 - of any type that msgspec has no form for
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return value.item()


def _array(_kind: object, value: Any) -> Array:  # noqa: ANN401 - of three types, which `_plain` returned
    dtype, shape, content = value
    if code_of(np.dtype(dtype)) is None:
        raise ValueError("an array of an unknown dtype")
    return np.frombuffer(content, np.dtype(dtype)).reshape(shape)
