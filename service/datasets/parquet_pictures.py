"""A column of pictures in Parquet as the library `datasets` writes it: a struct of bytes and path.

Paths are never opened: they would be paths of this machine.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.datasets.dataset import AnyArray
from service.datasets.parquet_types import PICTURE_BYTES
from service.errors import InvalidDataset
from service.pictures.decode import read_picture
from service.pictures.preprocessing import Preprocessing


class PictureColumn:
    """Encoded pictures, read one at a time: a dictionary may hold one of any size for all rows."""

    dtype = "uint8"
    most_rows = 1

    def __init__(self, name: str, preprocessing: Preprocessing, *, location: str) -> None:
        self.columns = [f"{name}.{PICTURE_BYTES}"]
        self.shape: tuple[int, ...] = ()
        self._name = name
        self._preprocessing = preprocessing
        self._place = f"{location}.{name}"

    def measure(self, record_batch: Any) -> None:  # noqa: ANN401 - pyarrow has no types
        """Take the size of the first picture as that of all."""
        self.shape = self._decoded(record_batch, 0, 0).shape

    def read(self, record_batch: Any, start: int) -> AnyArray:  # noqa: ANN401 - as above
        """Return pixels of shape (rows, height, width, channels)."""
        pixels: AnyArray = np.empty((record_batch.num_rows, *self.shape), np.uint8)
        for row, target in enumerate(pixels):
            found = self._decoded(record_batch, row, start)
            if found.shape != target.shape:
                raise InvalidDataset.at(
                    f"{self._place}[{start + row}]",
                    f"expected a picture of {_size(self.shape)} as in the rows before, got "
                    f"{_size(found.shape)}; make them one size by config.preprocessing, with a "
                    "resize to height and width or with a crop",
                )
            target[:] = found
        return pixels

    def _decoded(self, record_batch: Any, row: int, start: int) -> NDArray[np.uint8]:  # noqa: ANN401 - as above
        place = f"{self._place}[{start + row}]"
        found = record_batch.column(self._name)[row].as_py()
        content = None if found is None else found[PICTURE_BYTES]
        if content is None:
            raise InvalidDataset.at(
                place,
                "expected the bytes of a picture, got none; paths are never opened: embed the "
                "pictures in the file, as push_to_hub of `datasets` does",
            )
        return read_picture(content, self._preprocessing, place=place, invalid=InvalidDataset)


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[0]} x {shape[1]} pixels"
