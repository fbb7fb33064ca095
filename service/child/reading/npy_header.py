"""The header of an .npy array, read by numpy: what it claims, before any allocation."""

import math
import warnings
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from numpy.lib import format as npy_format

from service.errors import InvalidDataset
from service.runner.messages.dataset import MAX_RANK

MAGIC = npy_format.MAGIC_PREFIX
# Headers of plain arrays take 118 bytes; a longer one is an attack on the parser.
MAX_HEADER_BYTES = 10_000
# What of a file is needed to read one.
HEAD_BYTES = MAX_HEADER_BYTES + 12
# More than any limit; one of thousands of digits is not even to be told.
MAX_LENGTH = 2**63 - 1

_READERS = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
}
_NUMBERS = {"bool", "float16", "float32", "float64"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_TEXT = "text; write numbers"
_DATES = "dates; write numbers"
_REFUSED = {
    "O": "Python objects, which are never unpickled; write a plain array of numbers",
    "U": _TEXT,
    "S": _TEXT,
    "c": "complex numbers; write real ones",
    "M": _DATES,
    "m": _DATES,
    "V": "raw bytes (bfloat16, perhaps); write it as .astype('float32')",
    "f": "long doubles; write them as .astype('float64')",
}


@dataclass(frozen=True)
class NpyHeader:
    """Dtype and shape that an .npy array claims, and the bytes its header takes."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    header_bytes: int

    @property
    def n_rows(self) -> int:
        """Length of the first axis."""
        return self.shape[0]

    @property
    def file_bytes(self) -> int:
        """Bytes of the file, header and values; Python's integers do not overflow."""
        return self.header_bytes + math.prod(self.shape) * self.dtype.itemsize


def read_npy_header(head: bytes, *, place: str) -> NpyHeader:
    """Read the header in ``head``, the first `HEAD_BYTES` of a file.

    Raises
    ------
    InvalidDataset
        If these are no bytes of an .npy array, or one of a kind that is not read: objects, text,
        records, complex numbers, dates, Fortran order in more than one dimension.
    """
    if not head.startswith(MAGIC):
        raise InvalidDataset.at(place, "expected an .npy array, got bytes of another kind")
    stream = BytesIO(head)
    try:
        with warnings.catch_warnings(action="ignore"):
            reader = _READERS[npy_format.read_magic(stream)]
            shape, is_fortran, dtype = reader(stream, max_header_size=MAX_HEADER_BYTES)
    except Exception as error:
        # The text may be anything; numpy evaluates it as a literal.
        raise InvalidDataset.at(
            place,
            "expected the header of an .npy array of format version 1 or 2, of at most "
            f"{MAX_HEADER_BYTES} bytes, got another text",
        ) from error
    _check_dtype(dtype, place=place)
    _check_shape(shape, place=place)
    if is_fortran and len(shape) > 1:
        raise InvalidDataset.at(
            place, "expected rows in C order, got Fortran order; write np.ascontiguousarray(array)"
        )
    return NpyHeader(dtype, shape, stream.tell())


def _check_dtype(dtype: np.dtype[np.generic], *, place: str) -> None:
    if dtype.names is not None or dtype.subdtype is not None:
        raise InvalidDataset.at(
            place, "expected numbers, got records; write each of their fields as an array"
        )
    if dtype.name not in _NUMBERS:
        found = _REFUSED.get(dtype.kind, "a dtype that is not read here")
        raise InvalidDataset.at(place, f"expected numbers, got {found}")


def _check_shape(shape: tuple[int, ...], *, place: str) -> None:
    if len(shape) > MAX_RANK or not all(type(n) is int and 0 <= n <= MAX_LENGTH for n in shape):
        raise InvalidDataset.at(
            place,
            f"expected a shape of at most {MAX_RANK} axes, each from 0 to {MAX_LENGTH} long",
        )
    if not shape:
        raise InvalidDataset.at(place, "expected an array with a row per sample, got a scalar")
