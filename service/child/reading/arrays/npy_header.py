"""The header of an .npy array, read by numpy before anything is allocated."""

import math
import warnings
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO

import numpy as np
from numpy.lib import format as npy_format

from howsure.limits import MAX_NAME_LENGTH
from service.errors import InvalidDataset
from service.runner.messages.frames import MAX_RANK

MAGIC = npy_format.MAGIC_PREFIX
# As numpy writes almost every header: version 1, a dictionary of 118 bytes.
PLAIN_START = MAGIC + b"\x01\x00\x76\x00"
PLAIN_BYTES = 128
# A header of more bytes is an attack on the parser.
MAX_HEADER_BYTES = 10_000
HEAD_BYTES = MAX_HEADER_BYTES + 12
TEXT = "US"  # kinds of text of a fixed width
MAX_TEXT_BYTES = 4 * MAX_NAME_LENGTH
# Larger than any limit. A length of thousands of digits is not shown.
MAX_LENGTH = 2**63 - 1

_READERS = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
}
_NUMBERS = {"bool", "float16", "float32", "float64"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_REFUSED = {
    "O": "Python objects, which are never unpickled; write a plain array of numbers",
    "U": "text; write numbers",
    "S": "text; write numbers",
    "c": "complex numbers; write real ones",
    "M": "dates; write numbers",
    "m": "dates; write numbers",
    "V": "raw bytes (bfloat16, perhaps); write it as .astype('float32')",
    "f": "long doubles; write them as .astype('float64')",
}


@dataclass(frozen=True)
class NpyHeader:
    """The dtype and shape that an .npy array claims, and the length of its header."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    header_bytes: int
    is_fortran: bool = False  # whether the columns of a row are apart in the file

    @property
    def n_rows(self) -> int:
        """Length of the first axis."""
        return self.shape[0]

    @property
    def file_bytes(self) -> int:
        """Bytes of the file, header and values; Python's integers do not overflow."""
        return self.header_bytes + math.prod(self.shape) * self.dtype.itemsize

    def check_size(self, size: int, place: str) -> None:
        """Refuse a file of more or fewer bytes than the header claims."""
        if self.file_bytes != size:
            raise InvalidDataset.at(
                place,
                f"its header claims {self.file_bytes} bytes, shape {list(self.shape)} of "
                f"{self.dtype.name}, but there are {size}",
            )


def read_npy_header(head: bytes, *, place: str, may_be_text: bool = False) -> NpyHeader:
    """Read the header in ``head``, which has the first `HEAD_BYTES` of a file.

    ``may_be_text`` also takes names of classes, of a fixed width.

    Raises
    ------
    InvalidDataset
        If this is not an .npy array of numbers with a row per sample.
    """
    if not head.startswith(MAGIC):
        raise InvalidDataset.at(place, "expected an .npy array, got bytes of another kind")
    if head.startswith(PLAIN_START):
        return _read_plain(head[:PLAIN_BYTES], place, may_be_text=may_be_text)
    return _read(head, place, may_be_text=may_be_text)


def _read(head: bytes, place: str, *, may_be_text: bool) -> NpyHeader:
    stream = BytesIO(head)
    try:
        with warnings.catch_warnings(action="ignore"):
            reader = _READERS[npy_format.read_magic(stream)]
            shape, is_fortran, dtype = reader(stream, max_header_size=MAX_HEADER_BYTES)
    except Exception as error:
        # The text may be anything; numpy evaluates it as a literal.
        raise InvalidDataset.at(
            place,
            f"expected an .npy header of version 1 or 2 and at most {MAX_HEADER_BYTES} bytes",
        ) from error
    if fault := _fault(dtype, shape, may_be_text=may_be_text):
        raise InvalidDataset.at(place, fault)
    return NpyHeader(dtype, shape, stream.tell(), is_fortran and len(shape) > 1)


# Requests to a model repeat their header, and numpy takes 20 µs to read one.
_read_plain = lru_cache(maxsize=64)(_read)


def _fault(dtype: np.dtype[np.generic], shape: tuple[int, ...], *, may_be_text: bool) -> str:
    if dtype.names is not None or dtype.subdtype is not None:
        return "expected numbers, got records; write each of their fields as an array"
    if may_be_text and dtype.kind in TEXT:
        if not 0 < dtype.itemsize <= MAX_TEXT_BYTES:
            return f"expected names of at most {MAX_NAME_LENGTH} characters"
    elif dtype.name not in _NUMBERS:
        return f"expected numbers, got {_REFUSED.get(dtype.kind, 'a dtype that is not read here')}"
    if len(shape) > MAX_RANK or not all(type(n) is int and 0 <= n <= MAX_LENGTH for n in shape):
        return f"expected a shape of at most {MAX_RANK} axes, each from 0 to {MAX_LENGTH} long"
    if not shape:
        return "expected an array with a row per sample, got a scalar"
    return ""
