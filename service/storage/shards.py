"""Shards, each some thousand samples of a set, and their records."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
import structlog

import models
from howsure.npz import npz_bytes
from howsure.statistics.arrays import Uncertainty
from howsure.statistics.records.records import Records, concatenate
from service.errors import ArtifactDamaged
from service.runner.messages.dataset import (
    Batch,
    batch_of,
    batch_tensors,
)
from service.runner.messages.frames import (
    HEADER,
    Buffer,
    Frame,
    Kind,
    encode,
    parse_body,
    parse_header,
)
from service.storage.artifact_keys import JobFiles
from service.storage.artifact_rows import NewArtifact
from service.storage.artifact_store import ArtifactStore

log = structlog.get_logger(__name__)


def shard_buffers(batch: Batch, *, labelled: bool) -> list[Buffer]:
    """Return the content of a shard as consecutive buffers, without copies of arrays."""
    tensors = batch_tensors(batch, labelled=labelled)
    return encode(Frame(Kind.ROWS, 0, {"start": batch.start}, tensors))


def read_shard(path: Path) -> Batch:
    """Return the samples of a shard that this service wrote, numbered from 0."""
    with path.open("rb") as file:
        return batch_of(_read_frame(file).tensors)


def _read_frame(file: BinaryIO) -> Frame:
    header = parse_header(file.read(HEADER.size))
    fields = file.read(header.fields_bytes)
    # Memory of its own, so that numbers are aligned.
    tensors = np.fromfile(file, np.uint8, header.tensor_bytes)
    return parse_body(header, fields, tensors.data)


# A name beside the arrays of the records.
PROVIDER = "provider"


@dataclass(frozen=True)
class StoredRecords:
    """The stored records of a shard.

    ``provider`` is the execution provider that ran the model; empty if no model ran.
    """

    start: int
    key: str
    sha256: str
    size: int
    provider: str = ""

    def artifact(self, role: models.ArtifactRole, position: int) -> NewArtifact:
        """Return the values of its row."""
        label = f"{role}-{position}.npz"
        return NewArtifact(role, position, label, self.key, self.sha256, self.size)


def store_records(
    artifacts: ArtifactStore,
    files: JobFiles,
    role: models.ArtifactRole,
    start: int,
    records: Records,
    *,
    provider: str = "",
) -> StoredRecords:
    """Store the records of a shard; equal records share one file.

    Raises
    ------
    StorageFull
        If no space is left.
    """
    content = npz_bytes({**records.to_arrays(), PROVIDER: np.array(provider)})
    key = files.records(role, start, sha256(content).hexdigest())
    stored = artifacts.put_bytes(key, content)
    return StoredRecords(start, key, stored.sha256, stored.size, provider)


def read_records(artifacts: ArtifactStore, key: str, digest: str) -> Records:
    """Return stored records.

    Raises
    ------
    ArtifactDamaged
        If they are not what was stored.
    """
    return _unpacked(artifacts.get_bytes(key, digest))[0]


def usable(artifacts: ArtifactStore, start: int, key: str, digest: str) -> StoredRecords | None:
    """Return the records of an earlier attempt, or None if they are damaged.

    Records of a release that stores other arrays count as damaged.
    """
    try:
        content = artifacts.get_bytes(key, digest)
        _, provider = _unpacked(content)
    except (ArtifactDamaged, ValueError) as error:
        log.warning("records_made_anew", key=key, reason=str(error))
        return None
    return StoredRecords(start, key, digest, len(content), provider)


def join_records(
    artifacts: ArtifactStore, parts: Sequence[NewArtifact | models.Artifact], *, n_samples: int
) -> Records:
    """Join the records of shards, given in the order of the set, to those of the whole set.

    Raises
    ------
    ArtifactDamaged
        If one is not what was stored.
    """
    read = (read_records(artifacts, part.key, part.sha256) for part in parts)
    return concatenate(read, n_samples=n_samples)


def _unpacked(content: bytes) -> tuple[Records, str]:
    with np.load(BytesIO(content), allow_pickle=False) as archive:
        arrays = dict(archive)
    provider = str(arrays.pop(PROVIDER, ""))
    return Records.from_arrays(arrays), provider


def keep_learned(
    artifacts: ArtifactStore, files: JobFiles, records: Records, columns: Iterable[str]
) -> list[NewArtifact]:
    """Store the learned measure of a calibration set, which its records' shards do not hold.

    Raises
    ------
    StorageFull
        If no space is left.
    """
    found = {name: records.uncertainty[name] for name in columns}
    if not found:
        return []
    key = files.learned()
    stored = artifacts.put_bytes(key, npz_bytes(found))
    return [NewArtifact("learned", 0, "learned.npz", key, stored.sha256, stored.size)]


def learned_columns(artifacts: ArtifactStore, row: models.Calibration) -> dict[str, Uncertainty]:
    """Return the learned measure of a calibration set by column; empty if it has none.

    Raises
    ------
    ArtifactDamaged
        If it is not what was stored.
    """
    stored = next((found for found in row.artifacts if found.role == "learned"), None)
    if stored is None:
        return {}
    with artifacts.local_path(stored.key, stored.sha256) as path, np.load(path) as packed:
        return {name: packed[name] for name in packed.files}
