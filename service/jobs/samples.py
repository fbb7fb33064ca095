"""Samples of a calibration set that stay stored with their records after the job."""

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, TypeAlias

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

import models
from howsure.npz import write_npz
from howsure.statistics.label_model.recorded import Formula, with_learned
from howsure.statistics.records.records import Records
from service.jobs.recording import ShardTask
from service.predictions.provider_parity import RecordedRows
from service.runner.messages.frames import Array
from service.storage.artifact_rows import NewArtifact
from service.storage.artifact_store import ArtifactStore, file_failures
from service.storage.shards import read_shard

KeepInputs: TypeAlias = Literal["none", "some", "all"]

ROLE: models.ArtifactRole = "samples"
MOST_ROWS = 1000
MOST_BYTES = 2**26

# Names of the arrays in the file: the number of each sample in its set, and two prefixes.
INDEX = "index"
INPUT = "input/"
RECORD = "record/"
# As `howsure.statistics.measures.column` names a supplied column.
SUPPLIED = f"{RECORD}uncertainty_supplied_"


@dataclass(frozen=True, eq=False)
class PickedSample:
    """One sample: its inputs by name, without an axis for rows, its label and its own columns."""

    inputs: Mapping[str, Array]
    label: int
    supplied: Mapping[str, float]


@dataclass(frozen=True)
class KeptSamples:
    """The stored samples of a calibration. Each call reads the file again."""

    artifacts: ArtifactStore
    artifact: models.Artifact

    @classmethod
    def of(cls, artifacts: ArtifactStore, row: models.Calibration) -> Self | None:
        """Return those of a calibration; None if it keeps none, as one that was imported."""
        kept = next((found for found in row.artifacts if found.role == ROLE), None)
        return None if kept is None else cls(artifacts, kept)

    def inputs(self, n_rows: int) -> dict[str, Array]:
        """Return the first rows of each input.

        Raises
        ------
        ArtifactDamaged
            If the file is not what was stored.
        """
        with self._opened() as file:
            return _below(INPUT, file, slice(0, n_rows))

    def recorded(
        self, n_rows: int, columns: Sequence[str], formulas: Mapping[int, Formula]
    ) -> RecordedRows:
        """Return the records of the first rows, with these uncertainties.

        Those of the learned measure are computed by its formulas, by event.

        Raises
        ------
        ArtifactDamaged
            If the file is not what was stored.
        """
        with self._opened() as file:
            found = _below(RECORD, file, slice(0, n_rows))
        records = with_learned(Records.from_arrays(found), formulas)
        return RecordedRows(
            top_classes=records.top_classes,
            top_logits=records.top_logits,
            uncertainty={name: records.uncertainty[name] for name in columns},
        )

    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of the samples in their set, ascending.

        Raises
        ------
        ArtifactDamaged
            If the file is not what was stored.
        """
        with self._opened() as file:
            return np.asarray(file[INDEX], np.int64)

    def pick(self, numbers: Collection[int]) -> dict[int, PickedSample]:
        """Return those samples that are stored, by number.

        Raises
        ------
        ArtifactDamaged
            If the file is not what was stored.
        """
        with self._opened() as file:
            index = file[INDEX]
            places = np.flatnonzero(np.isin(index, list(numbers)))
            inputs, supplied = _below(INPUT, file, places), _below(SUPPLIED, file, places)
            labels = file[f"{RECORD}label"][places]
        return {
            int(index[place]): PickedSample(
                inputs={name: array[row] for name, array in inputs.items()},
                label=int(labels[row]),
                supplied={name: float(values[row]) for name, values in supplied.items()},
            )
            for row, place in enumerate(places)
        }

    @contextmanager
    def _opened(self) -> Iterator[NpzFile]:
        with self.artifacts.local_path(self.artifact.key, self.artifact.sha256) as path:
            file: NpzFile
            with np.load(path, allow_pickle=False) as file:
                yield file


def _below(prefix: str, file: NpzFile, rows: slice | NDArray[np.intp]) -> dict[str, Array]:
    """Return these rows of each array whose name begins so, by the rest of the name."""
    return {
        name.removeprefix(prefix): file[name][rows].copy()
        for name in file.files
        if name.startswith(prefix)
    }


def rows_to_keep(tasks: Sequence[ShardTask]) -> int:
    """Return how many samples of a set to keep at most: fewer if a sample is large."""
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
    ``folder`` is for a temporary file.

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
