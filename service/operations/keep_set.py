"""Keep a set that was uploaded: as shards."""

from collections.abc import Iterator

import models
from service.datasets import Dataset
from service.datasets.shards import shard_content, shard_rows
from service.storage.artifact_rows import NewArtifact
from service.storage.artifacts import ArtifactStore
from service.storage.job_files import JobFiles


def keep_shards(
    artifacts: ArtifactStore,
    files: JobFiles,
    dataset: Dataset,
    *,
    role: models.ArtifactRole,
    label: str,
) -> Iterator[NewArtifact]:
    """Store an open set, a shard at a time; yield what was stored.

    Every value is read, and so checked, here.

    Raises
    ------
    InvalidDataset
        If a value breaks a rule.
    StorageFull
        If no space is left.
    """
    labelled = dataset.info.labelled
    for position, batch in enumerate(dataset.batches(shard_rows(dataset.info))):
        key = files.shard(role, batch.start)
        stored = artifacts.put_bytes(key, shard_content(batch, labelled=labelled))
        yield NewArtifact(role, position, label, key, stored.sha256, stored.size)
