"""The samples of a calibration set that are kept when its shards go, with their records."""

import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Self, TypeAlias

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

import models
from service.core.records import Records
from service.datasets import DatasetLimits, open_dataset
from service.datasets.shards import write_npz
from service.operations.provider_parity import RecordedRows
from service.operations.record_shard import BATCH_SAMPLES, ShardTask
from service.runner.frames import Array
from service.storage.artifact_failures import artifact_failures
from service.storage.artifact_rows import NewArtifact
from service.storage.artifacts import ArtifactStore

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
    limits: DatasetLimits,
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
        for part in _rows_of(artifacts, task, within, limits):
            n_rows = len(next(iter(part.values())))
            for name, rows in part.items():
                if INPUT + name not in arrays:
                    arrays[INPUT + name] = np.empty((len(index), *rows.shape[1:]), rows.dtype)
                arrays[INPUT + name][filled : filled + n_rows] = rows
            filled += n_rows
    for name, array in records.take(index).to_arrays().items():
        arrays[RECORD + name] = array
    key = tasks[0].files.samples()
    with (
        artifact_failures(remote=False),
        tempfile.NamedTemporaryFile(dir=folder) as packed,
    ):
        write_npz(packed.file, arrays)
        packed.flush()
        stored = artifacts.put_file(key, Path(packed.name))
    return NewArtifact(ROLE, 0, "samples.npz", key, stored.sha256, stored.size)


def _rows_of(
    artifacts: ArtifactStore, task: ShardTask, rows: NDArray[np.int64], limits: DatasetLimits
) -> Iterator[Mapping[str, Array]]:
    """Yield the arrays of these rows of a shard, a part at a time."""
    with (
        artifacts.local_path(task.shard.key, task.shard.sha256) as path,
        open_dataset(path, location=task.location, limits=limits, labels_required=False) as dataset,
    ):
        for batch in dataset.batches(BATCH_SAMPLES):
            within = rows[(rows >= batch.start) & (rows < batch.start + len(batch.labels))]
            if within.size:
                yield {name: a[within - batch.start] for name, a in batch.arrays.items()}


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
