"""Sets of pictures, decoded as their batches pass."""

import math
from collections.abc import Iterator
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import Labels
from service.datasets.checks import check_n_samples
from service.datasets.closed_at_the_end import ClosedAtTheEnd
from service.datasets.dataset import ArrayInfo, Batch, DatasetInfo
from service.datasets.limits import MEBIBYTE, DatasetLimits
from service.datasets.pictures.archive import Archive
from service.datasets.pictures.claimed_pixels import claimed_pixels
from service.datasets.pictures.picture_set import PictureSet, picture_set
from service.datasets.pictures.read_ahead import Room, in_order
from service.datasets.reading import Reading
from service.errors import InvalidDataset, TooLarge
from service.pictures.decode import read_picture
from service.pictures.preprocessing import PIXELS, Preprocessing

# Four bytes a pixel as it is decoded, and as many again where its colours are changed.
_BYTES_PER_PIXEL = 8
_DECODING_BYTES = 256 * MEBIBYTE


def open_pictures(
    archive: Archive,
    *,
    file_format: str,
    limits: DatasetLimits,
    labels_required: bool,
    reading: Reading,
) -> "PictureDataset":
    """Return the set that an archive holds; the archive is its own from then on.

    Raises
    ------
    InvalidDataset
        If nothing says how pictures are made a model's input, or the set breaks a rule.
    TooLarge
        If there are more pictures, classes or pixels than is allowed.
    """
    location = archive.location
    if reading.preprocessing is None:
        raise InvalidDataset.at(
            location,
            "holds pictures: say with `preprocessing` how they are made the model's input, "
            'such as "imagenet"',
        )
    found = picture_set(archive, reading, limits=limits, labels_required=labels_required)
    n_samples = len(found.pictures.positions)
    check_n_samples(n_samples, place=location, limits=limits)
    dataset = PictureDataset(archive, found, reading.preprocessing, file_format=file_format)
    _check_size(dataset.info, location=location, limits=limits)
    return dataset


class PictureDataset(ClosedAtTheEnd):
    """An open set of pictures; every pass over it decodes them anew."""

    def __init__(
        self,
        archive: Archive,
        found: PictureSet,
        preprocessing: Preprocessing,
        *,
        file_format: str,
    ) -> None:
        self._archive = archive
        self._found = found
        self._preprocessing = preprocessing
        self._room = Room(_DECODING_BYTES)
        positions = found.pictures.positions
        size = fixed_size(preprocessing) or self._decoded(positions[0]).shape[:2]
        self._shape = (*size, preprocessing.channels)
        shape = (len(positions), *self._shape)
        self.info = DatasetInfo(
            kind="inputs",
            format=file_format,
            arrays={PIXELS: ArrayInfo("uint8", shape)},
            n_samples=len(positions),
            n_classes=None,
            supplied=(),
            labelled=found.labelled,
            class_map=found.class_map,
            is_numbered_by_name=found.is_numbered_by_name,
            notes=found.notes,
        )

    def labels(self) -> Labels:
        """Return the classes of all samples: zeros, which mean nothing, of an unlabelled set."""
        return self._found.labels.copy()

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all samples in the archive's order, ``size`` at a time."""
        if size < 1:
            raise ValueError(f"size must be at least 1, not {size}")
        pictures = in_order(
            self._found.pictures.positions,
            self._picture,
            lambda position: self._archive.size(position) + math.prod(self._shape),
        )
        with closing(pictures):
            for start in range(0, self.info.n_samples, size):
                yield self._batch(pictures, start, size)

    def file_names(self, start: int, stop: int) -> list[str]:
        """Return what the pictures of some rows are called in the archive."""
        positions = self._found.pictures.positions
        return [self._archive.names[position] for position in positions[start:stop]]

    def close(self) -> None:
        """Let go of the archive."""
        self._archive.close()

    def _batch(self, pictures: Iterator[NDArray[np.uint8]], start: int, size: int) -> Batch:
        labels = self._found.labels[start : start + size].copy()
        pixels = np.empty((len(labels), *self._shape), np.uint8)
        for row in range(len(labels)):
            pixels[row] = next(pictures)
        return Batch(start, {PIXELS: pixels}, labels, {})

    def _picture(self, position: int) -> NDArray[np.uint8]:
        pixels = self._decoded(position)
        if pixels.shape != self._shape:
            raise InvalidDataset.at(
                self._place(position),
                f"expected {_size(self._shape)} pixels, as the first picture has, got "
                f"{_size(pixels.shape)}; say with preprocessing.resize and preprocessing.crop "
                "to which size pictures are brought",
            )
        return pixels

    def _decoded(self, position: int) -> NDArray[np.uint8]:
        content = self._archive.read(position)
        with self._room.taken(claimed_pixels(content) * _BYTES_PER_PIXEL):
            return read_picture(
                content, self._preprocessing, place=self._place(position), invalid=InvalidDataset
            )

    def _place(self, position: int) -> str:
        return self._found.pictures.place(self._archive.names[position])


def fixed_size(preprocessing: Preprocessing) -> tuple[int, int] | None:
    """Return height and width of every picture, or None where they are those of the picture."""
    if preprocessing.crop is not None:
        return preprocessing.crop
    return preprocessing.resize if isinstance(preprocessing.resize, tuple) else None


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]} x {shape[0]}"


def _check_size(info: DatasetInfo, *, location: str, limits: DatasetLimits) -> None:
    if info.row_bytes > limits.max_row_bytes:
        raise TooLarge.at(
            location,
            f"expected at most {limits.max_row_bytes} bytes per picture, got {info.row_bytes}; "
            "send a smaller preprocessing.resize or crop",
        )
    total = info.row_bytes * info.n_samples
    if total > limits.max_inflated_bytes:
        raise TooLarge.at(
            location,
            f"expected at most {limits.max_inflated_bytes} bytes of pixels, got {total}; "
            "send fewer pictures, or a smaller preprocessing.resize or crop",
        )
