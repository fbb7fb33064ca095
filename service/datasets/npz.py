"""Sets in .npz archives, read row by row from several members at once."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np

from service.core.arrays import Floats, Labels
from service.datasets.checks import Places, check_inputs, check_labels, check_outputs
from service.datasets.closed_at_the_end import ClosedAtTheEnd
from service.datasets.dataset import AnyArray, Batch, DatasetInfo
from service.datasets.limits import DatasetLimits
from service.datasets.npy_header import NpyHeader, read_npy_header
from service.datasets.npz_layout import LABELS, npz_layout
from service.datasets.reading import Reading
from service.datasets.supplied import SUPPLIED_PREFIX, check_supplied
from service.datasets.zip_archive import MemberStream, ZipArchive
from service.datasets.zip_kind import holds_pictures, is_zip
from service.errors import InvalidDataset

FORMAT = "npz"
LABELS_PER_READ = 65_536


def is_npz(head: bytes, path: Path) -> bool:
    """Tell whether a file is an archive of arrays."""
    return is_zip(head) and not holds_pictures(head, path)


def open_npz(
    path: Path,
    *,
    location: str,
    limits: DatasetLimits,
    labels_required: bool,
    reading: Reading,  # noqa: ARG001 - nothing is left open
) -> "NpzDataset":
    """Open an .npz archive, having read its headers and checked its labels, if it has any."""
    with ExitStack() as stack:
        file = path.open("rb")
        archive = stack.enter_context(closing(ZipArchive(file, location=location, limits=limits)))
        headers = {
            name: _header(archive, name, size, place=f"{location}.{name}")
            for name, size in archive.sizes.items()
        }
        info = npz_layout(
            headers, location=location, limits=limits, labels_required=labels_required
        )
        dataset = NpzDataset(archive, headers, info, location=location, limits=limits)
        if info.labelled:
            for _ in dataset.label_slices():
                pass
        stack.pop_all()
        return dataset


class NpzDataset(ClosedAtTheEnd):
    """An open .npz archive; every pass over it inflates its members anew."""

    def __init__(
        self,
        archive: ZipArchive,
        headers: Mapping[str, NpyHeader],
        info: DatasetInfo,
        *,
        location: str,
        limits: DatasetLimits,
    ) -> None:
        self.info = info
        self._archive = archive
        self._headers = headers
        self._location = location
        self._limits = limits

    def labels(self) -> Labels:
        """Return the classes of all samples: zeros, which mean nothing, of an unlabelled set."""
        if not self.info.labelled:
            return np.zeros(self.info.n_samples, np.int64)
        return np.concatenate(list(self.label_slices()))

    def label_slices(self) -> Iterator[Labels]:
        """Yield the checked labels of a labelled set, a slice at a time."""
        with closing(self._open(LABELS)) as stream:
            for start in range(0, self.info.n_samples, LABELS_PER_READ):
                yield self._read_labels(stream, start, LABELS_PER_READ)

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all samples in their order, ``size`` at a time."""
        if size < 1:
            raise ValueError(f"size must be at least 1, not {size}")
        supplied = {name: f"{SUPPLIED_PREFIX}{name}" for name in self.info.supplied}
        with ExitStack() as stack:
            streams = {
                name: stack.enter_context(closing(self._open(name)))
                for name in (*self.info.arrays, *supplied.values())
            }
            if self.info.labelled:
                streams[LABELS] = stack.enter_context(closing(self._open(LABELS)))
            for start in range(0, self.info.n_samples, size):
                yield Batch(
                    start,
                    {
                        name: self._read(streams[name], name, start, size)
                        for name in self.info.arrays
                    },
                    self._read_labels(streams.get(LABELS), start, size),
                    {
                        name: self._read_supplied(streams[column], column, start, size)
                        for name, column in supplied.items()
                    },
                )

    def close(self) -> None:
        """Let go of the file."""
        self._archive.close()

    def _open(self, name: str) -> MemberStream:
        """Return the member's values, the header skipped."""
        stream = self._archive.open(name)
        stream.read(self._headers[name].header_bytes)
        return stream

    def _read(self, stream: MemberStream, name: str, start: int, size: int) -> AnyArray:
        values = self._rows(stream, name, start, size)
        place = f"{self._location}.{name}"
        if self.info.kind == "inputs":
            check_inputs(values, place=place, start=start)
        else:
            places = Places(self._location, name)
            check_outputs(values, kind=self.info.kind, places=places, start=start)
        return values

    def _read_supplied(self, stream: MemberStream, column: str, start: int, size: int) -> Floats:
        values = self._rows(stream, column, start, size)
        return check_supplied(values, place=f"{self._location}.{column}", start=start)

    def _read_labels(self, stream: MemberStream | None, start: int, size: int) -> Labels:
        if stream is None:
            return np.zeros(min(size, self.info.n_samples - start), np.int64)
        return check_labels(
            self._rows(stream, LABELS, start, size),
            place=f"{self._location}.{LABELS}",
            start=start,
            n_classes=self.info.n_classes,
            n_allowed=self._limits.max_classes,
        )

    def _rows(self, stream: MemberStream, name: str, start: int, size: int) -> AnyArray:
        header = self._headers[name]
        shape = (min(size, self.info.n_samples - start), *header.shape[1:])
        values: AnyArray = np.empty(shape, dtype=header.dtype)
        stream.read_into(values.reshape(-1).view(np.uint8))
        return values.astype(header.dtype.newbyteorder("="), copy=False)


def _header(archive: ZipArchive, name: str, size: int, *, place: str) -> NpyHeader:
    with closing(archive.open(name)) as stream:
        header = read_npy_header(stream, place=place)
    if header.file_bytes != size:
        raise InvalidDataset.at(
            place,
            f"its header claims {header.file_bytes} bytes with shape {header.shape}, "
            f"but the archive holds {size}",
        )
    return header
