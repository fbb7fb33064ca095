"""The header of an .npy array, read without trusting it: what it claims, before any allocation."""

import ast
import math
import re
import struct
from dataclasses import dataclass

import numpy as np

from service.datasets.zip_archive import MemberStream
from service.errors import InvalidDataset

MAGIC = b"\x93NUMPY"
# Headers of plain arrays take 118 bytes; a longer one is an attack on the parser.
MAX_HEADER_BYTES = 10_000
MAX_RANK = 32
# More than any limit; one of thousands of digits is not even to be told.
MAX_LENGTH = 2**63 - 1

_LENGTHS = {(1, 0): struct.Struct("<H"), (2, 0): struct.Struct("<L"), (3, 0): struct.Struct("<L")}
_DTYPE = re.compile(r"[<>=|]?(b1|[iu][1248]|f[248])")
_TEXT = "text; write numbers"
_DATES = "dates; write numbers"
_REFUSED = {
    "O": "Python objects, which are never unpickled; write a plain array of numbers",
    "U": _TEXT,
    "S": _TEXT,
    "a": _TEXT,
    "c": "complex numbers; write real ones",
    "M": _DATES,
    "m": _DATES,
    "V": "raw bytes (bfloat16, perhaps); write it as .astype('float32')",
    "f": "long doubles; write them as .astype('float64')",
    "g": "long doubles; write them as .astype('float64')",
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


def read_npy_header(stream: MemberStream, *, place: str) -> NpyHeader:
    """Read the header at the start of ``stream``.

    Raises
    ------
    InvalidDataset
        If these are no bytes of an .npy array, or one of a kind that is not read: objects, text,
        records, complex numbers, dates, Fortran order in more than one dimension.
    """
    prefix = stream.read(len(MAGIC) + 2)
    if not prefix.startswith(MAGIC):
        raise InvalidDataset.at(place, "expected an .npy array, got bytes of another kind")
    length = _LENGTHS.get((prefix[-2], prefix[-1]))
    if length is None:
        raise InvalidDataset.at(place, "expected an .npy array of format version 1, 2 or 3")
    (n_bytes,) = length.unpack(stream.read(length.size))
    if n_bytes > MAX_HEADER_BYTES:
        raise InvalidDataset.at(
            place, f"expected a header of at most {MAX_HEADER_BYTES} bytes, got {n_bytes}"
        )
    text = stream.read(n_bytes)
    claimed = _literal(text, place=place)
    dtype = _dtype(claimed["descr"], place=place)
    shape = _shape(claimed["shape"], place=place)
    if claimed["fortran_order"] is not False and len(shape) > 1:
        raise InvalidDataset.at(
            place, "expected rows in C order, got Fortran order; write np.ascontiguousarray(array)"
        )
    return NpyHeader(dtype, shape, len(prefix) + length.size + n_bytes)


def _literal(text: bytes, *, place: str) -> dict[str, object]:
    try:
        claimed = ast.literal_eval(text.decode("latin-1").strip())
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        claimed = None
    if not isinstance(claimed, dict) or claimed.keys() != {"descr", "fortran_order", "shape"}:
        raise InvalidDataset.at(place, "expected the header of an .npy array, got another text")
    return claimed


def _dtype(descr: object, *, place: str) -> np.dtype[np.generic]:
    if not isinstance(descr, str):
        raise InvalidDataset.at(
            place, "expected numbers, got records; write each of their fields as an array"
        )
    if not _DTYPE.fullmatch(descr):
        found = _REFUSED.get(descr.lstrip("<>=|")[:1], "a dtype that is not read here")
        raise InvalidDataset.at(place, f"expected numbers, got {found}")
    return np.dtype(descr)


def _shape(claimed: object, *, place: str) -> tuple[int, ...]:
    if (
        not isinstance(claimed, tuple)
        or len(claimed) > MAX_RANK
        or not all(type(length) is int and 0 <= length <= MAX_LENGTH for length in claimed)
    ):
        raise InvalidDataset.at(
            place,
            f"expected a shape of at most {MAX_RANK} lengths, none negative or above {MAX_LENGTH}",
        )
    if not claimed:
        raise InvalidDataset.at(place, "expected an array with a row per sample, got a scalar")
    return claimed
