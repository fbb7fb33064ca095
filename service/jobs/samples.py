"""The samples of a calibration set that are kept when its shards go, with their records."""

import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Self, TypeAlias

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

import models
from howsure.statistics.records.records import Records
from service.jobs.recording import ShardTask
from service.predictions.provider_parity import RecordedRows
from service.runner.messages.frames import Array
from service.storage.artifact_rows import NewArtifact
from service.storage.artifact_store import ArtifactStore, file_failures
from service.storage.shards import read_shard, write_npz

KeepInputs: TypeAlias = Literal["none", "some", "all"]

ROLE: models.ArtifactRole = "samples"
MOST_ROWS = 1000
MOST_BYTES = 2**26

# How the arrays of the file are called: the number of each sample in its set, and what is below.
INDEX = "index"
INPUT = "input/"
RECORD = "record/"


@dataclass(frozen=True)
class KeptSamples:
    """Where they lie; only as much is read as is asked for."""

    artifacts: ArtifactStore
    artifact: models.Artifact

    @classmethod
    def of(cls, artifacts: ArtifactStore, row: models.Calibration) -> Self | None:
        """Return those of a calibration; None where it keeps none, as one that was imported."""
        kept = next((found for found in row.artifacts if found.role == ROLE), None)
        return None if kept is None else cls(artifacts, kept)

    @property
    def sha256(self) -> str:
        """What tells them from others."""
        return self.artifact.sha256

    def inputs(self, n_rows: int) -> dict[str, Array]:
        """Return the first rows of each input.

        Raises
        ------
        ArtifactDamaged
            If they are not what was stored.
        """
        return self._first(INPUT, n_rows)

    def recorded(self, n_rows: int, columns: Sequence[str]) -> RecordedRows:
        """Return what is recorded of the first rows, of these uncertainties.

        Raises
        ------
        ArtifactDamaged
            If they are not what was stored.
        """
        found = self._first(RECORD, n_rows)
        return RecordedRows(
            top_classes=found["top_classes"],
            top_logits=found["top_logits"],
            uncertainty={name: found[f"uncertainty_{name}"] for name in columns},
        )

    def _first(self, prefix: str, n_rows: int) -> dict[str, Array]:
        with self.artifacts.local_path(self.artifact.key, self.artifact.sha256) as path:
            return _first_rows(path, prefix, n_rows)


def rows_to_keep(tasks: Sequence[ShardTask]) -> int:
    """Return how many samples of a set are kept at most: fewer where one is large."""
    row_bytes = max(task.shard.size // task.n_rows for task in tasks)
    return max(1, min(MOST_ROWS, MOST_BYTES // max(row_bytes, 1)))


def keep_samples(
    artifacts: ArtifactStore,
    tasks: Sequence[ShardTask],
    records: Records,
    index: NDArray[np.int64],
    *,
    folder: Path,
    check: Callable[[], None],
) -> NewArtifact:
    """Store the samples of these rows of a set, with their records.

    Only shards that hold one of them are read. ``check`` is called before each and raises to stop;
    ``folder`` is for a file that is there meanwhile.

    Raises
    ------
    ArtifactDamaged, StorageFull
        If a shard is not what was stored, or no space is left.
    """
    arrays: dict[str, Array] = {INDEX: index}
    filled = 0
    for task in tasks:
        within = index[(index >= task.start) & (index < task.start + task.n_rows)] - task.start
        if within.size == 0:
            continue
        check()
        with artifacts.local_path(task.shard.key, task.shard.sha256) as path:
            found = read_shard(path).rows(within)
        for name, rows in found.arrays.items():
            if INPUT + name not in arrays:
                arrays[INPUT + name] = np.empty((len(index), *rows.shape[1:]), rows.dtype)
            arrays[INPUT + name][filled : filled + len(within)] = rows
        filled += len(within)
    for name, array in records.take(index).to_arrays().items():
        arrays[RECORD + name] = array
    key = tasks[0].files.samples()
    with (
        file_failures(),
        tempfile.NamedTemporaryFile(dir=folder) as packed,
    ):
        write_npz(packed.file, arrays)
        packed.flush()
        stored = artifacts.put_file(key, Path(packed.name))
    return NewArtifact(ROLE, 0, "samples.npz", key, stored.sha256, stored.size)


def _first_rows(path: Path, prefix: str, n_rows: int) -> dict[str, Array]:
    """Return the first rows of the arrays whose names begin so, of a file that was made here."""
    found = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if member.startswith(prefix):
                with archive.open(member) as stream:
                    found[member[len(prefix) :].removesuffix(".npy")] = _first_of(stream, n_rows)
    return found


def _first_of(stream: IO[bytes], n_rows: int) -> Array:
    """Return the first rows of a .npy stream, whose array is in C order: it was indexed by rows."""
    npy_format.read_magic(stream)
    shape, _, dtype = npy_format.read_array_header_1_0(stream)
    shape = (min(n_rows, shape[0]), *shape[1:])
    n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.frombuffer(stream.read(n_bytes), dtype).reshape(shape)


_LABEL = f"{RECORD}label"
# As `howsure.statistics.measures.column` calls a column that came with the samples.
_SUPPLIED = f"{RECORD}uncertainty_supplied_"
_NPY = ".npy"


@dataclass(frozen=True, eq=False)
class PickedSample:
    """One sample: its inputs by name, without an axis for rows, its label and its own columns."""

    inputs: Mapping[str, Array]
    label: int
    supplied: Mapping[str, float]


def kept_numbers(kept: KeptSamples) -> NDArray[np.int64]:
    """Return the numbers of the samples that are kept, ascending.

    Raises
    ------
    ArtifactDamaged
        If they are not what was stored.
    """
    with _opened(kept) as archive:
        return _index(archive)


def pick_samples(kept: KeptSamples, numbers: Collection[int]) -> dict[int, PickedSample]:
    """Return those of these samples that are kept, by number; no other one is read.

    Raises
    ------
    ArtifactDamaged
        If they are not what was stored.
    """
    with _opened(kept) as archive:
        index = _index(archive)
        places = np.flatnonzero(np.isin(index, list(numbers)))
        found = {
            name.removesuffix(_NPY): _rows(archive, name, places)
            for name in archive.namelist()
            if name.startswith((INPUT, _SUPPLIED, _LABEL + _NPY))
        }
    return {
        int(index[place]): PickedSample(
            inputs=_below(INPUT, found, row),
            label=int(found[_LABEL][row]),
            supplied={name: float(value) for name, value in _below(_SUPPLIED, found, row).items()},
        )
        for row, place in enumerate(places)
    }


@contextmanager
def _opened(kept: KeptSamples) -> Iterator[zipfile.ZipFile]:
    with (
        kept.artifacts.local_path(kept.artifact.key, kept.artifact.sha256) as path,
        zipfile.ZipFile(path) as archive,
    ):
        yield archive


def _index(archive: zipfile.ZipFile) -> NDArray[np.int64]:
    with archive.open(INDEX + _NPY) as stream:
        index: NDArray[np.int64] = npy_format.read_array(stream, allow_pickle=False)
    return index


def _rows(archive: zipfile.ZipFile, name: str, places: NDArray[np.intp]) -> Array:
    """Return these rows, ascending, of an array, and read little else of it."""
    with archive.open(name) as stream:
        npy_format.read_magic(stream)
        shape, _, dtype = npy_format.read_array_header_1_0(stream)
        begin = stream.tell()
        n_bytes = int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize
        rows = [_read(stream, begin + int(place) * n_bytes, n_bytes) for place in places]
    return np.frombuffer(b"".join(rows), dtype).reshape(len(rows), *shape[1:])


def _read(stream: IO[bytes], at: int, n_bytes: int) -> bytes:
    stream.seek(at)
    return stream.read(n_bytes)


def _below(prefix: str, found: Mapping[str, Array], row: int) -> dict[str, Array]:
    """Return a row of each array whose name begins so, by the rest of the name."""
    return {
        name.removeprefix(prefix): array[row]
        for name, array in found.items()
        if name.startswith(prefix)
    }
