"""A set of pictures: decoded by a few threads, in order, no more ahead than memory has room for."""

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Labels
from service.child.pictures.decode import claimed_pixels, read_picture
from service.child.reading.checks import check_batch_size, check_n_samples, check_sizes
from service.child.reading.class_indices import ClassIndices, NamedBy, NamedLabels, class_indices
from service.child.reading.pictures.archives import Archive, TarPictures, ZipPictures
from service.child.reading.pictures.picture_files import PictureFiles, left_out, picture_files
from service.child.reading.pictures.picture_labels import (
    find_label_files,
    find_label_table,
    labels_of_files,
    labels_of_folders,
    labels_of_table,
)
from service.child.reading.set_file import SetFile
from service.errors import InvalidDataset
from service.runner.messages.dataset import ArrayInfo, Batch, DatasetInfo
from service.runner.messages.limits import MEBIBYTE
from service.runner.messages.preprocessing import PIXELS, Preprocessing
from service.runner.messages.reading import SetContext

Made = TypeVar("Made")

MOST_THREADS = 4
MOST_BYTES_AHEAD = 64 * MEBIBYTE


def in_order(
    items: Iterable[int],
    make: Callable[[int], Made],
    kept_bytes: Callable[[int], int],
    *,
    max_threads: int = MOST_THREADS,
) -> Generator[Made, None, None]:
    """Yield what ``make`` makes of each item, in their order; the next ones are made meanwhile.

    ``kept_bytes`` is what an item takes until it is yielded. What is made ahead stays within 64
    MiB and four items a thread. An error comes up in its item's turn, so that the first item at
    fault is told, whichever thread is done first.
    """
    n_threads = min(max_threads, MOST_THREADS, _n_cpus())
    ahead: deque[tuple[Future[Made], int]] = deque()
    taken = 0
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="pictures")
    try:
        for item in items:
            size = kept_bytes(item)
            while ahead and (taken + size > MOST_BYTES_AHEAD or len(ahead) == 4 * n_threads):
                made, given_back = ahead.popleft()
                taken -= given_back
                yield made.result()
            ahead.append((pool.submit(make, item), size))
            taken += size
        while ahead:
            yield ahead.popleft()[0].result()
    finally:
        pool.shutdown(cancel_futures=True)


def _n_cpus() -> int:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return allowed or 1


class Room:
    """Bytes that several threads share: who needs some waits until they are free."""

    def __init__(self, size: int) -> None:
        self._size = self._free = size
        self._freed = threading.Condition()

    @contextmanager
    def taken(self, size: int) -> Iterator[None]:
        """Hold ``size`` bytes, or all there are if it is more."""
        size = min(size, self._size)
        with self._freed:
            self._freed.wait_for(lambda: self._free >= size)
            self._free -= size
        try:
            yield
        finally:
            with self._freed:
                self._free += size
                self._freed.notify_all()


@dataclass(frozen=True)
class PictureSet:
    """An archive's pictures and their labels, zeros if it has none, in the archive's order."""

    pictures: PictureFiles
    labels: Labels
    labelled: bool
    class_map: dict[str, int] | None
    is_numbered_by_name: bool
    notes: tuple[str, ...]


def picture_set(archive: Archive, ctx: SetContext) -> PictureSet:
    """Find the pictures of an archive and the class of each.

    Raises
    ------
    InvalidDataset
        If there are no pictures, a picture has no label where others have one or labels are
        required, or a class has no index.
    TooLarge
        If there are too many classes.
    """
    pictures = picture_files(archive)
    found, named_by, others = _labels(pictures, ctx)
    if found is None:
        if ctx.labels_required:
            raise ctx.invalid(
                "expected a class for each picture: a folder for each of at least two classes "
                "(`cat/1.jpg`), a table `labels.csv` with the columns file and label, or files "
                "`1.cls` or `1.json` beside `1.jpg`",
            )
        indices, labels = None, np.zeros(len(pictures.positions), np.int64)
    else:
        indices = class_indices(found.names, ctx.reading, place=ctx.location, named_by=named_by)
        labels = found.labels(indices.map)
    return PictureSet(
        pictures,
        labels,
        labelled=found is not None,
        class_map=indices.map if indices else None,
        is_numbered_by_name=indices is not None and indices.by_order,
        notes=_notes(indices, others),
    )


def _labels(
    pictures: PictureFiles, ctx: SetContext
) -> tuple[NamedLabels | None, NamedBy, str | None]:
    """Return the classes' names, where they come from, and what to tell of the other files."""
    most, n_pictures = ctx.limits.max_classes, len(pictures.positions)
    if not ctx.reading.wants_labels:
        return None, "folders", None
    if table := find_label_table(pictures):
        found = labels_of_table(pictures, table, max_classes=most, required=ctx.labels_required)
        return found, "labels", left_out(pictures, 1, table)
    if ending := find_label_files(pictures):
        found = labels_of_files(pictures, ending, max_classes=most)
        return found, "labels", left_out(pictures, n_pictures, ending)
    found = labels_of_folders(pictures, ctx.reading, max_classes=most)
    return found, "folders", left_out(pictures, 0, None)


def _notes(indices: ClassIndices | None, others: str | None) -> tuple[str, ...]:
    said = indices.note if indices else None
    return tuple(note for note in (said, others) if note)


# Four bytes a pixel as it is decoded, and as many again where its colours are changed.
_BYTES_PER_PIXEL = 8
_DECODING_BYTES = 256 * MEBIBYTE


ZIP_FORMAT, TAR_FORMAT = "zip", "tar"


def open_zip(file: SetFile, ctx: SetContext) -> "PictureDataset":
    """Open a zip archive of pictures, having read its directory and labels."""
    return _open(ZipPictures(file, ctx), ZIP_FORMAT, ctx)


def open_tar(file: SetFile, ctx: SetContext) -> "PictureDataset":
    """Open a tar archive of pictures, having read its headers and labels."""
    return _open(TarPictures(file, ctx.location), TAR_FORMAT, ctx)


def _open(archive: Archive, file_format: str, ctx: SetContext) -> "PictureDataset":
    if ctx.reading.preprocessing is None:
        raise ctx.invalid(
            "holds pictures: say with `preprocessing` how they are made the model's input, "
            'such as "imagenet"'
        )
    found = picture_set(archive, ctx)
    check_n_samples(len(found.pictures.positions), place=ctx.location, limits=ctx.limits)
    dataset = PictureDataset(archive, found, ctx.reading.preprocessing, ctx, file_format)
    fix = "send fewer pictures, or a smaller preprocessing.resize or crop"
    check_sizes(dataset.info, ctx, fix=fix)
    return dataset


class PictureDataset:
    """An open set of pictures; every pass over it decodes them anew."""

    def __init__(
        self,
        archive: Archive,
        found: PictureSet,
        preprocessing: Preprocessing,
        ctx: SetContext,
        file_format: str,
    ) -> None:
        self._archive = archive
        self._found = found
        self._preprocessing = preprocessing
        self._room = Room(_DECODING_BYTES)
        self._max_threads = ctx.limits.max_threads
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
        check_batch_size(size)
        pictures = in_order(
            self._found.pictures.positions,
            self._picture,
            lambda position: self._archive.size(position) + math.prod(self._shape),
            max_threads=self._max_threads,
        )
        with closing(pictures):
            for start in range(0, self.info.n_samples, size):
                yield self._batch(pictures, start, size)

    def file_names(self, start: int, stop: int) -> list[str]:
        """Return what the pictures of some rows are called in the archive."""
        positions = self._found.pictures.positions
        return [self._archive.names.files[position] for position in positions[start:stop]]

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
        return self._found.pictures.place(self._archive.names.files[position])


def fixed_size(preprocessing: Preprocessing) -> tuple[int, int] | None:
    """Return height and width of every picture, or None where they are those of the picture."""
    if preprocessing.crop is not None:
        return preprocessing.crop
    return preprocessing.resize if isinstance(preprocessing.resize, tuple) else None


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]} x {shape[0]}"
