"""A set of pictures, decoded in order by a few threads."""

import math
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from howsure.preprocessing import PIXELS, Preprocessing
from howsure.statistics.arrays import Labels
from service.child.pictures.decode import claimed_pixels, read_set_picture
from service.child.reading.checks import check_n_samples, check_sizes
from service.child.reading.class_indices import (
    ClassLabels,
    NamedBy,
    encode_names,
    labels_by_name,
)
from service.child.reading.pictures.archives import Archive, TarPictures, ZipPictures
from service.child.reading.pictures.broken_pictures import refuse_pictures
from service.child.reading.pictures.picture_files import PictureFiles, left_out, picture_files
from service.child.reading.pictures.picture_labels import (
    class_folders,
    find_label_files,
    find_label_table,
    labels_of_files,
    labels_of_table,
)
from service.child.reading.set_file import SetFile
from service.errors import InvalidDataset, InvalidInput
from service.runner.messages.dataset import ArrayInfo, Batch, DatasetInfo
from service.runner.messages.limits import MEBIBYTE
from service.runner.messages.reading import SetContext

Made = TypeVar("Made")

ZIP_FORMAT, TAR_FORMAT = "zip", "tar"
MOST_THREADS = 4
MOST_BYTES_AHEAD = 64 * MEBIBYTE
# Four bytes for each pixel as it is decoded, and as many again where its colours are changed.
_BYTES_PER_PIXEL = 8
# Pictures that take more are decoded one at a time.
_LARGE_BYTES = 64 * MEBIBYTE


def in_order(
    items: Iterable[int], make: Callable[[int], Made], *, item_bytes: int, max_threads: int
) -> Generator[Made, None, None]:
    """Yield ``make(item)`` for each item in order, while threads work on the next items.

    Waiting results take at most 64 MiB and four items per thread. Errors are raised in the order
    of the items, whichever thread finishes first.
    """
    n_threads = min(max_threads, MOST_THREADS)
    n_ahead = max(1, min(4 * n_threads, MOST_BYTES_AHEAD // max(item_bytes, 1)))
    ahead: deque[Future[Made]] = deque()
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="pictures")
    try:
        for item in items:
            if len(ahead) == n_ahead:
                yield ahead.popleft().result()
            ahead.append(pool.submit(make, item))
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def open_zip(file: SetFile, ctx: SetContext) -> "PictureDataset":
    """Open a zip archive of pictures and read its directory and labels."""
    return PictureDataset(ZipPictures(file, ctx), ZIP_FORMAT, ctx)


def open_tar(file: SetFile, ctx: SetContext) -> "PictureDataset":
    """Open a tar archive of pictures and read its headers and labels."""
    return PictureDataset(TarPictures(file, ctx), TAR_FORMAT, ctx)


class PictureDataset:
    """An open set of pictures; each iteration over its batches decodes them again."""

    def __init__(self, archive: Archive, file_format: str, ctx: SetContext) -> None:
        pictures = picture_files(archive)
        if ctx.reading.preprocessing is None:
            raise ctx.invalid(
                "holds pictures, which need `preprocessing` to become the model's input: "
                '"imagenet", "clip", "unit", "none" or JSON'
            )
        found, others = _labels(pictures, ctx)
        if found is None and ctx.labels_required:
            raise ctx.invalid(
                "expected a class for each picture: a folder for each of at least two classes "
                "(`cat/1.jpg`), a table `labels.csv` with the columns file and label, or files "
                "`1.cls` or `1.json` beside `1.jpg`",
            )
        n_samples = len(pictures.positions)
        check_n_samples(n_samples, place=ctx.location, limits=ctx.limits)
        self._archive = archive
        self._pictures = pictures
        self._labels = found.labels if found else np.zeros(n_samples, np.int64)
        self._preprocessing = ctx.reading.preprocessing
        self._large = threading.Lock()
        self._max_threads = ctx.limits.max_threads
        decoded = map(self._picture, pictures.positions)
        size = size_of_all(self._preprocessing, decoded)
        self._shape = (*size, self._preprocessing.channels)
        self.info = DatasetInfo(
            kind="inputs",
            format=file_format,
            arrays={PIXELS: ArrayInfo("uint8", (n_samples, *self._shape))},
            n_samples=n_samples,
            n_classes=None,
            supplied=(),
            labelled=found is not None,
            class_map=found.class_map if found else None,
            is_numbered_by_name=found is not None and found.is_numbered_by_name,
            notes=(*(found.notes if found else ()), *([others] if others else ())),
        )
        fix = "send fewer pictures, or a smaller preprocessing.resize or crop"
        check_sizes(self.info, ctx, fix=fix)

    def labels(self) -> Labels:
        """Return the labels of all samples; meaningless zeros if the set is unlabelled."""
        return self._labels.copy()

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all samples in the archive's order, ``size`` at a time."""
        decoded = in_order(
            self._pictures.positions,
            self._picture,
            item_bytes=math.prod(self._shape),
            max_threads=self._max_threads,
        )
        with closing(decoded):
            for start in range(0, self.info.n_samples, size):
                labels = self._labels[start : start + size].copy()
                pixels = np.empty((len(labels), *self._shape), np.uint8)
                for row in range(len(labels)):
                    found = next(decoded)
                    if isinstance(found, InvalidInput):
                        place = self._archive.names.location
                        raise refuse_pictures(found, decoded, place=place)
                    pixels[row] = self._of_one_size(found, start + row)
                yield Batch(start, {PIXELS: pixels}, labels, {})
                del pixels

    def file_names(self, start: int, stop: int) -> NDArray[np.str_]:
        """Return the names of the pictures of some rows, as wide as the longest of all."""
        files = self._archive.names.files
        names = [files[position] for position in self._pictures.positions[start:stop]]
        return np.array(names, dtype=f"U{self._longest_name}")

    @cached_property
    def _longest_name(self) -> int:
        return max(map(len, self._pictures.names()))

    def _picture(self, position: int) -> NDArray[np.uint8] | InvalidInput:
        """Return the pixels of a picture, or why it cannot be used."""
        try:
            return self._decoded(position)
        except InvalidInput as error:
            return error

    def _of_one_size(self, pixels: NDArray[np.uint8], row: int) -> NDArray[np.uint8]:
        if pixels.shape != self._shape:
            raise InvalidDataset.at(
                self._place(self._pictures.positions[row]),
                f"expected {_size(self._shape)} pixels, as the first picture has, got "
                f"{_size(pixels.shape)}; say with preprocessing.resize and preprocessing.crop "
                "to which size pictures are brought",
            )
        return pixels

    def _decoded(self, position: int) -> NDArray[np.uint8] | InvalidInput:
        content = self._archive.read(position)
        is_large = claimed_pixels(content) * _BYTES_PER_PIXEL > _LARGE_BYTES
        with self._large if is_large else nullcontext():
            return read_set_picture(content, self._preprocessing, place=self._place(position))

    def _place(self, position: int) -> str:
        return self._pictures.place(self._archive.names.files[position])


def _labels(pictures: PictureFiles, ctx: SetContext) -> tuple[ClassLabels | None, str | None]:
    """Return the labels, if there are any, and a note on the files that are not used.

    Raises
    ------
    InvalidDataset
        If a picture has no label where others have one, or a class has no index.
    TooLarge
        If there are too many classes.
    """
    if not ctx.reading.wants_labels:
        return None, None
    found: Iterator[str] | None
    named_by: NamedBy = "labels"
    empty: set[str] = set()
    used: tuple[int, str | None] = (0, None)
    if table := find_label_table(pictures):
        found, used = labels_of_table(pictures, table, required=ctx.labels_required), (1, table)
    elif ending := find_label_files(pictures):
        found, used = labels_of_files(pictures, ending), (len(pictures.positions), ending)
    else:
        named_by = "folders"
        found, empty = class_folders(pictures, ctx.reading)
    if found is None:
        return None, left_out(pictures, *used)
    names, codes = encode_names(found)
    labels = labels_by_name(
        names,
        codes,
        ctx.reading,
        place=ctx.location,
        max_classes=ctx.limits.max_classes,
        named_by=named_by,
        more=empty,
    )
    return labels, left_out(pictures, *used)


def size_of_all(
    preprocessing: Preprocessing, decoded: Iterable[NDArray[np.uint8] | InvalidInput | None]
) -> tuple[int, int]:
    """Return height and width of every picture: those of the first one, if pictures keep theirs."""
    if preprocessing.crop is not None:
        return preprocessing.crop
    if isinstance(preprocessing.resize, tuple):
        return preprocessing.resize
    pixels = next((picture for picture in decoded if isinstance(picture, np.ndarray)), None)
    # Without any, the refusal of the first batch names them all.
    return (1, 1) if pixels is None else pixels.shape[:2]


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]} x {shape[0]}"
