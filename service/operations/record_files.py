"""Records as they are kept: a .npz of plain arrays for each shard."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO

import numpy as np
import structlog

import models
from service.core.records import Records, join
from service.datasets.shards import npz_content
from service.errors import ArtifactDamaged
from service.storage.artifact_rows import NewArtifact
from service.storage.artifacts import ArtifactStore
from service.storage.job_files import JobFiles

# Beside the arrays of the records.
PROVIDER = "provider"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class StoredRecords:
    """The records of a shard, as they lie in the artifact store.

    ``provider`` is the execution provider that the model ran with; empty where there was none.
    """

    start: int
    key: str
    sha256: str
    size: int
    provider: str = ""

    def artifact(self, role: models.ArtifactRole, position: int) -> NewArtifact:
        """Return what is to become the row of it."""
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
    """Store the records of a shard; the same records twice are one file.

    Raises
    ------
    StorageFull
        If no space is left.
    """
    content = npz_content({**records.to_arrays(), PROVIDER: np.array(provider)})
    key = files.records(role, start, sha256(content).hexdigest())
    stored = artifacts.put_bytes(key, content)
    return StoredRecords(start, key, stored.sha256, stored.size, provider)


def read_records(artifacts: ArtifactStore, key: str, digest: str) -> Records:
    """Return the records that lie there.

    Raises
    ------
    ArtifactDamaged
        If they are not what was stored.
    """
    return _unpacked(artifacts.get_bytes(key, digest))[0]


def usable(artifacts: ArtifactStore, start: int, key: str, digest: str) -> StoredRecords | None:
    """Return records that another attempt made; None, and nothing there any more, if damaged.

    So are those of another release that keeps other arrays.
    """
    try:
        content = artifacts.get_bytes(key, digest)
        _, provider = _unpacked(content)
    except (ArtifactDamaged, ValueError) as error:
        log.warning("records_made_anew", key=key, reason=str(error))
        artifacts.delete([key])
        return None
    return StoredRecords(start, key, digest, len(content), provider)


def join_records(
    artifacts: ArtifactStore, parts: Sequence[NewArtifact | models.Artifact], *, n_samples: int
) -> Records:
    """Return the records of a whole set from those of its shards, which are in its order.

    Raises
    ------
    ArtifactDamaged
        If one is not what was stored.
    """
    read = (read_records(artifacts, part.key, part.sha256) for part in parts)
    return join(read, n_samples=n_samples)


def _unpacked(content: bytes) -> tuple[Records, str]:
    with np.load(BytesIO(content), allow_pickle=False) as archive:
        arrays = dict(archive)
    provider = str(arrays.pop(PROVIDER, ""))
    return Records.from_arrays(arrays), provider
