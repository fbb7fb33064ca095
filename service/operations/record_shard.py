"""Make the records of one shard, on whatever machine can reach the artifact store."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

import models
from service.core.arrays import as_scores
from service.core.records import Records, build_records, concatenate
from service.core.tie_keys import tie_keys
from service.datasets import Batch, DatasetLimits, open_dataset
from service.operations.open_models import OpenModels
from service.operations.record_files import StoredRecords, store_records
from service.operations.retrying import until_possible
from service.runner import Device, RunnerPool
from service.storage.artifact_rows import NewArtifact
from service.storage.artifacts import ArtifactStore
from service.storage.job_files import JobFiles

BATCH_SAMPLES = 2048

Recorder: TypeAlias = Callable[[Batch], Records]


@dataclass(frozen=True)
class ShardTools:
    """What shards are recorded with: of a process of the service, or of a cluster's worker."""

    artifacts: ArtifactStore
    runners: RunnerPool
    open_models: OpenModels
    dataset_limits: DatasetLimits


@dataclass(frozen=True)
class ShardTask:
    """A shard to record, and all that is needed to know for it: plain data, which can travel.

    ``start`` is the number of its first row in the set, which is called ``location`` in errors.
    ``model_files`` are those of the ONNX model and ``resolved`` is how it is run: without one the
    set has its outputs; ``tenant`` is whose it is.
    """

    files: JobFiles
    shard: NewArtifact
    start: int
    n_rows: int
    location: str
    role: models.ArtifactRole
    model_files: tuple[NewArtifact, ...]
    resolved: Mapping[str, Any] | None
    top_k: tuple[int, ...]
    seed: int
    tenant: str = ""


def record_shard(
    tools: ShardTools,
    task: ShardTask,
    *,
    device: Device | None = None,
    check: Callable[[], None],
    done: Callable[[int], None] = lambda _rows: None,
) -> StoredRecords:
    """Store the records of a shard; the same bytes whoever does it, on one kind of device.

    Parameters
    ----------
    device
        Which of the process's devices the model runs on; the first if none is named.
    check
        Called between batches and while a model is waited for; raises to stop.
    done
        Told of each batch how many rows it had.

    Raises
    ------
    ServiceError
        If a row breaks a rule, the ONNX model does not answer, or there is no space.
    """
    record = until_possible(_recorder(tools, task, device, check), check)
    parts = []
    with (
        tools.artifacts.local_path(task.shard.key, task.shard.sha256) as path,
        open_dataset(
            path, location=task.location, limits=tools.dataset_limits, labels_required=False
        ) as dataset,
    ):
        for batch in dataset.batches(BATCH_SAMPLES):
            check()
            parts.append(record(replace(batch, start=task.start + batch.start)))
            done(len(batch.labels))
    provider = "" if task.resolved is None else (device or tools.runners.device()).provider
    return store_records(
        tools.artifacts,
        task.files,
        task.role,
        task.start,
        concatenate(parts),
        provider=provider,
    )


def _recorder(
    tools: ShardTools, task: ShardTask, device: Device | None, check: Callable[[], None]
) -> Recorder:
    if task.resolved is None:
        return scores_recorder(top_k=task.top_k, seed=task.seed)
    return _model_recorder(tools, task, task.resolved, device, check)


def _model_recorder(
    tools: ShardTools,
    task: ShardTask,
    resolved: Mapping[str, Any],
    device: Device | None,
    check: Callable[[], None],
) -> Recorder:
    """Return what makes records by running an ONNX model in a child process."""
    model = tools.open_models.open(task.model_files, tenant=task.tenant)

    def record(batch: Batch) -> Records:
        records = tools.runners.record(
            model.files,
            resolved,
            batch.arrays,
            batch.labels,
            start=batch.start,
            seed=task.seed,
            location=task.location,
            device=device,
            while_waiting=check,
        )
        return records.with_supplied(batch.supplied)

    return record


def scores_recorder(*, top_k: Sequence[int], seed: int) -> Recorder:
    """Return what makes records from logits or probabilities."""

    def record(batch: Batch) -> Records:
        ((kind, values),) = batch.arrays.items()
        scores = values.astype(np.float64)
        if kind == "probabilities":
            with np.errstate(divide="ignore"):
                scores = np.log(scores)
        return build_records(
            as_scores(scores),
            batch.labels,
            tie_keys=tie_keys(values, seed),
            top_k=top_k,
            logits=kind == "logits",
        ).with_supplied(batch.supplied)

    return record
