"""Sets of arrays: .npz archives, and .npy files with the labels beside them."""

import zipfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import BinaryIO

import numpy as np

from howsure.statistics.arrays import Floats, Labels
from service.child.reading.checks import (
    SUPPLIED_PREFIX,
    Places,
    check_batch_size,
    check_inputs,
    check_labels,
    check_outputs,
    check_supplied,
)
from service.child.reading.npy_header import HEAD_BYTES, NpyHeader, read_npy_header
from service.child.reading.npz_layout import LABELS, check_label_header, npz_layout
from service.child.reading.set_file import SetFile
from service.child.reading.zip_archive import CHUNK_BYTES, MemberStream, ZipArchive, ZipKind
from service.errors import InvalidDataset, TooLarge
from service.runner.messages.dataset import MAX_NAME_LENGTH, AnyArray, Batch, DatasetInfo
from service.runner.messages.reading import SetContext

NPZ_FORMAT, NPY_FORMAT = "npz", "npy"
LABELS_PER_READ = 65_536
NPZ = ZipKind(".npz archive", CHUNK_BYTES, "send fewer arrays")

_SUFFIX = ".npy"


class NpzArchive:
    """The arrays of an .npz archive, by their names."""

    def __init__(self, file: BinaryIO, *, location: str, max_inflated_bytes: int) -> None:
        self._archive = ZipArchive(
            file,
            location=location,
            kind=NPZ,
            max_inflated_bytes=max_inflated_bytes,
            place=lambda member: f"{location}.{_array_name(member, location=location)}",
        )
        self._members: dict[str, zipfile.ZipInfo] = {}
        for member in self._archive.members:
            name = _array_name(member, location=location)
            if name in self._members:
                raise InvalidDataset.at(
                    f"{location}.{name}", "expected each array once, got it twice"
                )
            self._members[name] = member

    @property
    def sizes(self) -> dict[str, int]:
        """Inflated bytes of each array, by its name."""
        return {name: member.file_size for name, member in self._members.items()}

    def open(self, name: str) -> MemberStream:
        """Return the bytes of an array's file; several may be open at once."""
        return self._archive.open(self._members[name])

    def close(self) -> None:
        """Let go of the archive, whose file is not its own."""
        self._archive.close()


class ArrayFile:
    """An .npy file of its own or in an archive, whose header has been read."""

    def __init__(self, open_bytes: Callable[[], MemberStream], size: int, place: str) -> None:
        self.place = place
        self._open_bytes = open_bytes
        self._size = size
        with closing(open_bytes()) as stream:
            self.header: NpyHeader = read_npy_header(stream.read_up_to(HEAD_BYTES), place=place)

    def check_size(self) -> None:
        """Refuse an array that claims more or fewer bytes than its file has."""
        claimed = self.header.file_bytes
        if claimed != self._size:
            raise InvalidDataset.at(
                self.place,
                f"its header claims {claimed} bytes with shape {self.header.shape}, but there are "
                f"{self._size}",
            )

    def open(self) -> MemberStream:
        """Return the array's values."""
        stream = self._open_bytes()
        stream.read(self.header.header_bytes)
        return stream

    def read_rows(self, stream: MemberStream, start: int, size: int) -> AnyArray:
        """Return up to ``size`` rows, which are the next of ``stream`` and begin at ``start``."""
        header = self.header
        values: AnyArray = np.empty(
            (min(size, header.n_rows - start), *header.shape[1:]), header.dtype
        )
        stream.read_into(values.reshape(-1).view(np.uint8))
        return values.astype(header.dtype.newbyteorder("="), copy=False)


def open_npz(file: SetFile, ctx: SetContext) -> "ArraySet":
    """Open an .npz archive, having read its headers and checked its labels, if it has any."""
    refusal = NPZ.too_long(ctx.location)
    stream = file.open_limited(most=NPZ.max_directory_bytes, refusal=refusal)
    archive = NpzArchive(
        stream, location=ctx.location, max_inflated_bytes=ctx.limits.max_inflated_bytes
    )
    arrays: dict[str, ArrayFile] = {}
    for name, size in archive.sizes.items():
        arrays[name] = ArrayFile(partial(archive.open, name), size, ctx.place(name))
        arrays[name].check_size()
    headers = {name: array.header for name, array in arrays.items()}
    info = npz_layout(headers, ctx)
    labels = arrays.pop(LABELS, None)
    return ArraySet(arrays, labels, info, ctx)


def open_npy(file: SetFile, ctx: SetContext, labels_file: SetFile | None = None) -> "ArraySet":
    """Open an array and the labels beside it, having read both headers and checked the labels."""
    name = ctx.reading.kind or "inputs"
    array = _array_file(file, ctx.place(name))
    info = npz_layout({name: array.header}, replace(ctx, labels_required=False))
    info = replace(info, format=NPY_FORMAT, labelled=labels_file is not None)
    if array.header.file_bytes > ctx.limits.max_inflated_bytes:
        raise TooLarge.at(
            array.place,
            f"expected at most {ctx.limits.max_inflated_bytes} bytes, got "
            f"{array.header.file_bytes}",
        )
    array.check_size()
    labels, labels_place = None, f"{ctx.location}_labels"
    if labels_file is not None:
        labels = _array_file(labels_file, labels_place)
        _check_labels_file(labels, info)
    elif ctx.labels_required:
        raise InvalidDataset.at(
            labels_place,
            "expected the labels of this array, which has none itself; send an .npy array of "
            f"class indices as the part {labels_place}",
        )
    return ArraySet({name: array}, labels, info, ctx)


def _array_file(file: SetFile, place: str) -> ArrayFile:
    return ArrayFile(lambda: MemberStream(file.open(), place), file.size, place)


class ArraySet:
    """Arrays side by side; every pass over them reads their files anew."""

    def __init__(
        self,
        arrays: Mapping[str, ArrayFile],
        labels: ArrayFile | None,
        info: DatasetInfo,
        ctx: SetContext,
    ) -> None:
        self.info = info
        self._arrays = arrays
        self._labels = labels
        self._ctx = ctx
        for _ in self._label_slices(LABELS_PER_READ):
            pass  # they are checked as they pass

    def labels(self) -> Labels:
        """Return the classes of all samples: zeros, which mean nothing, of an unlabelled set."""
        return np.concatenate(list(self._label_slices(LABELS_PER_READ)))

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all samples in their order, ``size`` at a time."""
        check_batch_size(size)
        with ExitStack() as stack:
            streams = {
                name: stack.enter_context(closing(array.open()))
                for name, array in self._arrays.items()
            }
            labels = stack.enter_context(closing(self._label_slices(size)))
            for start in range(0, self.info.n_samples, size):
                yield Batch(
                    start,
                    {
                        name: self._read(streams[name], name, start, size)
                        for name in self.info.arrays
                    },
                    next(labels),
                    {
                        name: self._read_supplied(streams, name, start, size)
                        for name in self.info.supplied
                    },
                )

    def _read(self, stream: MemberStream, name: str, start: int, size: int) -> AnyArray:
        array = self._arrays[name]
        values = array.read_rows(stream, start, size)
        if self.info.kind == "inputs":
            check_inputs(values, place=array.place, start=start)
        else:
            places = Places(self._ctx.location, name)
            check_outputs(values, kind=self.info.kind, places=places, start=start)
        return values

    def _read_supplied(
        self, streams: Mapping[str, MemberStream], name: str, start: int, size: int
    ) -> Floats:
        column = f"{SUPPLIED_PREFIX}{name}"
        array = self._arrays[column]
        values = array.read_rows(streams[column], start, size)
        return check_supplied(values, place=array.place, start=start)

    def _label_slices(self, size: int) -> Generator[Labels]:
        """Yield the checked labels, ``size`` at a time."""
        n_samples, file = self.info.n_samples, self._labels
        if file is None:
            for start in range(0, n_samples, size):
                yield np.zeros(min(size, n_samples - start), np.int64)
            return
        with closing(file.open()) as stream:
            for start in range(0, n_samples, size):
                yield check_labels(
                    file.read_rows(stream, start, size),
                    place=file.place,
                    start=start,
                    n_classes=self.info.n_classes,
                    n_allowed=self._ctx.limits.max_classes,
                )


def _check_labels_file(labels: ArrayFile, info: DatasetInfo) -> None:
    check_label_header(labels.header, place=labels.place)
    if labels.header.n_rows != info.n_samples:
        raise InvalidDataset.at(
            labels.place,
            f"expected {info.n_samples} labels, one for each row of the array beside them, "
            f"got {labels.header.n_rows}",
        )
    labels.check_size()


def _array_name(member: zipfile.ZipInfo, *, location: str) -> str:
    """Return the array's name, which is a label: a model's input may be called ``block/x:0``."""
    name = member.filename
    shown = ascii(name[:MAX_NAME_LENGTH])
    if not name.endswith(_SUFFIX) or name == _SUFFIX:
        raise InvalidDataset.at(
            location, f"expected .npy arrays and nothing else, got the member {shown}"
        )
    name = name.removesuffix(_SUFFIX)
    if (
        len(name) > MAX_NAME_LENGTH
        or member.orig_filename != member.filename
        or not name.isprintable()
        or "\\" in name
        or any(part in ("", ".", "..") for part in name.split("/"))
    ):
        raise InvalidDataset.at(
            location, f"expected members with the plain names of arrays, got {shown}"
        )
    return name
