"""The first samples of a calibration set, and what is recorded of them."""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

import models
from service.datasets import DatasetLimits, open_dataset
from service.operations.provider_parity import RecordedRows
from service.runner.frames import Array
from service.storage.artifacts import ArtifactStore

MOST_BYTES = 2**28  # of samples, which go to a child in one request


@dataclass(frozen=True)
class RehearsalRows:
    """Where they lie; only as much is read as is asked for."""

    artifacts: ArtifactStore
    limits: DatasetLimits
    samples: models.Artifact
    records: models.Artifact

    @classmethod
    def of(
        cls, artifacts: ArtifactStore, limits: DatasetLimits, row: models.Calibration
    ) -> Self | None:
        """Return those of a calibration; None where it keeps none, as one that was imported."""
        kept = {found.role: found for found in row.artifacts}
        if "calibration" not in kept or "records" not in kept:
            return None
        return cls(artifacts, limits, kept["calibration"], kept["records"])

    def samples_of(self, n_rows: int) -> dict[str, Array]:
        """Return the first rows of each input, fewer where they are large.

        The file's digest is not checked, which would read all of it each time.

        Raises
        ------
        ArtifactDamaged, InvalidDataset
            If the file is missing, or no set any more.
        """
        with (
            self.artifacts.unverified_path(self.samples.key) as path,
            open_dataset(path, location="calibration", limits=self.limits) as dataset,
        ):
            fitting = MOST_BYTES // max(dataset.info.row_bytes, 1)
            return next(iter(dataset.batches(max(1, min(n_rows, fitting))))).arrays

    def recorded_of(self, n_rows: int, columns: Sequence[str]) -> RecordedRows:
        """Return what is recorded of the first rows, of these uncertainties.

        Raises
        ------
        ArtifactDamaged
            If the records are not what was stored.
        """
        with self.artifacts.local_path(self.records.key, self.records.sha256) as path:
            return RecordedRows(
                top_classes=_first_rows(path, "top_classes", n_rows),
                top_logits=_first_rows(path, "top_logits", n_rows),
                uncertainty={
                    name: _first_rows(path, f"uncertainty_{name}", n_rows) for name in columns
                },
            )


def _first_rows(path: Path, name: str, n_rows: int) -> NDArray[Any]:
    """Return the first rows of an array of an .npz file that this service wrote."""
    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as stream:
        return _first_of(stream, n_rows)


def _first_of(stream: IO[bytes], n_rows: int) -> NDArray[Any]:
    npy_format.read_magic(stream)
    shape, is_fortran, dtype = npy_format.read_array_header_1_0(stream)
    if is_fortran:
        stream.seek(0)
        return np.asarray(npy_format.read_array(stream, allow_pickle=False)[:n_rows])
    shape = (min(n_rows, shape[0]), *shape[1:])
    n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.frombuffer(stream.read(n_bytes), dtype).reshape(shape)
