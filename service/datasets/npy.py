"""A set as two .npy files: an array, and the labels that are sent beside it."""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from service.core.arrays import Labels
from service.datasets.checks import Places, check_inputs, check_labels, check_outputs
from service.datasets.closed_at_the_end import ClosedAtTheEnd
from service.datasets.dataset import AnyArray, Batch, DatasetInfo
from service.datasets.limits import DatasetLimits
from service.datasets.npy_header import MAGIC, NpyHeader, read_npy_header
from service.datasets.npz_layout import npz_layout
from service.datasets.reading import Reading
from service.datasets.zip_archive import MemberStream
from service.errors import InvalidDataset, TooLarge

FORMAT = "npy"
INPUTS = "inputs"
LABELS_PER_READ = 65_536


def is_npy(head: bytes, _path: Path) -> bool:
    """Tell whether a file is a single array."""
    return head.startswith(MAGIC)


def open_npy(
    path: Path,
    *,
    location: str,
    limits: DatasetLimits,
    labels_required: bool,
    reading: Reading,
) -> "NpyDataset":
    """Open an array and the labels beside it, having checked those and read both headers."""
    name = reading.kind or INPUTS
    array = NpyFile(path, f"{location}.{name}")
    info = replace(
        npz_layout({name: array.header}, location=location, limits=limits, labels_required=False),
        format=FORMAT,
        labelled=reading.labels is not None,
    )
    array.check_size(limits)
    labels = None
    if reading.labels is not None:
        labels = NpyFile(reading.labels, f"{location}_labels")
        _check_labels_file(labels, info, limits)
    elif labels_required:
        raise InvalidDataset.at(
            f"{location}_labels",
            "expected the labels of this array, which has none itself; send an .npy array of "
            f"class indices as the part {location}_labels",
        )
    dataset = NpyDataset(array, labels, info, location=location, limits=limits)
    if labels is not None:
        for _ in dataset.label_slices():
            pass
    return dataset


class NpyFile:
    """An .npy file whose header has been read, and which has the bytes that it claims."""

    def __init__(self, path: Path, place: str) -> None:
        self.path = path
        self.place = place
        self._file_bytes = path.stat().st_size
        with path.open("rb") as file:
            self.header: NpyHeader = read_npy_header(
                MemberStream(file, self._file_bytes, place), place=place
            )

    def check_size(self, limits: DatasetLimits) -> None:
        """Refuse an array that claims too much, or otherwise than its file has bytes."""
        claimed = self.header.file_bytes
        if claimed > limits.max_inflated_bytes:
            raise TooLarge.at(
                self.place, f"expected at most {limits.max_inflated_bytes} bytes, got {claimed}"
            )
        if claimed != self._file_bytes:
            raise InvalidDataset.at(
                self.place,
                f"its header claims {claimed} bytes with shape {self.header.shape}, but the file "
                f"has {self._file_bytes}",
            )

    def slices(self, size: int) -> Generator[AnyArray]:
        """Yield the rows in their order, ``size`` at a time."""
        header = self.header
        with self.path.open("rb") as file:
            stream = MemberStream(file, self._file_bytes, self.place)
            stream.read(header.header_bytes)
            for start in range(0, header.n_rows, size):
                shape = (min(size, header.n_rows - start), *header.shape[1:])
                values: AnyArray = np.empty(shape, dtype=header.dtype)
                stream.read_into(values.reshape(-1).view(np.uint8))
                yield values.astype(header.dtype.newbyteorder("="), copy=False)


class NpyDataset(ClosedAtTheEnd):
    """An array with its labels; every pass over it reads the files anew."""

    def __init__(
        self,
        array: NpyFile,
        labels: NpyFile | None,
        info: DatasetInfo,
        *,
        location: str,
        limits: DatasetLimits,
    ) -> None:
        self.info = info
        self._array = array
        self._labels = labels
        self._places = Places(location, info.kind)
        self._limits = limits

    def labels(self) -> Labels:
        """Return the classes of all samples: zeros, which mean nothing, of an unlabelled set."""
        return np.concatenate(list(self.label_slices()))

    def label_slices(self, size: int = LABELS_PER_READ) -> Generator[Labels]:
        """Yield the checked labels, ``size`` at a time."""
        if self._labels is None:
            for start in range(0, self.info.n_samples, size):
                yield np.zeros(min(size, self.info.n_samples - start), np.int64)
            return
        start = 0
        with closing(self._labels.slices(size)) as slices:
            for values in slices:
                yield check_labels(
                    values,
                    place=self._labels.place,
                    start=start,
                    n_classes=self.info.n_classes,
                    n_allowed=self._limits.max_classes,
                )
                start += len(values)

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all samples in their order, ``size`` at a time."""
        if size < 1:
            raise ValueError(f"size must be at least 1, not {size}")
        start = 0
        with (
            closing(self._array.slices(size)) as slices,
            closing(self.label_slices(size)) as labels,
        ):
            for values, classes in zip(slices, labels, strict=True):
                self._check(values, start)
                yield Batch(start, {self.info.kind: values}, classes, {})
                start += len(values)

    def _check(self, values: AnyArray, start: int) -> None:
        if self.info.kind == "inputs":
            check_inputs(values, place=self._array.place, start=start)
        else:
            check_outputs(values, kind=self.info.kind, places=self._places, start=start)


def _check_labels_file(labels: NpyFile, info: DatasetInfo, limits: DatasetLimits) -> None:
    header = labels.header
    if len(header.shape) > 1:
        fix = "labels.ravel()" if header.shape[1:] == (1,) else "labels.argmax(axis=1), if one-hot"
        raise InvalidDataset.at(
            labels.place,
            f"expected one class index per sample, got shape {header.shape}; write {fix}",
        )
    if not np.issubdtype(header.dtype, np.integer):
        raise InvalidDataset.at(
            labels.place,
            f"expected integers, got {header.dtype.name}; write labels.astype('int64')",
        )
    if header.n_rows != info.n_samples:
        raise InvalidDataset.at(
            labels.place,
            f"expected {info.n_samples} labels, one for each row of the array beside them, "
            f"got {header.n_rows}",
        )
    labels.check_size(limits)
