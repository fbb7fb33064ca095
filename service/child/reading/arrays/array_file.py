"""An array of a set: its header, its size, and its rows."""

from collections.abc import Callable, Iterator
from typing import IO

import numpy as np

from service.child.reading.arrays.npy_header import HEAD_BYTES, NpyHeader, read_npy_header
from service.child.reading.arrays.zip_archive import read_into
from service.child.reading.set_file import refuse_damage
from service.errors import InvalidDataset
from service.runner.messages.dataset import AnyArray
from service.runner.messages.limits import MEBIBYTE

# An array in Fortran order is read as a whole.
MAX_FORTRAN_BYTES = 256 * MEBIBYTE


class ArrayFile:
    """An .npy file, alone or in an archive, whose header has been read."""

    def __init__(
        self,
        open_bytes: Callable[[], IO[bytes]],
        size: int,
        place: str,
        *,
        may_be_text: bool = False,
    ) -> None:
        self.place = place
        self.size = size
        self._open_bytes = open_bytes
        with refuse_damage(place):
            head = open_bytes().read(HEAD_BYTES)
        self.header: NpyHeader = read_npy_header(head, place=place, may_be_text=may_be_text)

    def check_size(self) -> None:
        """Refuse an array that claims more or fewer bytes than its file has."""
        self.header.check_size(self.size, self.place)
        if self.header.is_fortran and self.size > MAX_FORTRAN_BYTES:
            raise InvalidDataset.at(
                self.place,
                f"expected C order in an array above {MAX_FORTRAN_BYTES // MEBIBYTE} MiB, got "
                "Fortran order; write np.ascontiguousarray(array)",
            )

    def rows(self, size: int) -> Iterator[AnyArray]:
        """Yield the rows in native byte order, ``size`` at a time."""
        header = self.header
        with refuse_damage(self.place):
            stream = self._open_bytes()
            stream.read(header.header_bytes)
        if header.is_fortran:
            whole: AnyArray = np.empty(header.shape[::-1], header.dtype)
            read_into(stream, whole, self.place)
            for start in range(0, header.n_rows, size):
                yield whole.T[start : start + size].astype(header.dtype.newbyteorder("="), "C")
            return
        for start in range(0, header.n_rows, size):
            shape = (min(size, header.n_rows - start), *header.shape[1:])
            values: AnyArray = np.empty(shape, header.dtype)
            read_into(stream, values, self.place)
            yield values.astype(header.dtype.newbyteorder("="), copy=False)
