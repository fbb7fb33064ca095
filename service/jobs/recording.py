"""Recording of shards: the uncertainties and outcomes of their samples."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import models
from howsure.outputs import log_scores
from howsure.statistics.arrays import as_uncertainty
from howsure.statistics.measures import SCORE
from howsure.statistics.records.build import build_records
from howsure.statistics.records.order import tie_keys
from howsure.statistics.records.pairs import CORRECT, build_pair_records
from howsure.statistics.records.records import Records, concatenate
from service.runner.devices import Device
from service.runner.messages.dataset import PAIRS, Batch
from service.runner.messages.limits import DatasetLimits
from service.runner.model_files import OpenModels
from service.runner.pool import RunnerPool
from service.storage.artifact_keys import JobFiles
from service.storage.artifact_rows import NewArtifact
from service.storage.artifact_store import ArtifactStore
from service.storage.shards import StoredRecords, read_shard, store_records

BATCH_SAMPLES = 2048

Recorder: TypeAlias = Callable[[Batch], Records]


@dataclass(frozen=True)
class RecordingContext:
    """The store, runners and limits that recording needs, in the service or a cluster worker."""

    artifacts: ArtifactStore
    runners: RunnerPool
    open_models: OpenModels
    dataset_limits: DatasetLimits


@dataclass(frozen=True)
class ShardTask:
    """A shard to record and everything needed for it, as plain data that can be sent to a worker.

    ``start`` is the number of its first row in the set, which errors call ``location``.
    ``model_files`` are the files of the ONNX model and ``resolved`` the options to run it with,
    None if the set holds outputs, which ``decision_threshold`` decides on. ``tenant`` is the owner.
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
    decision_threshold: float | None = None


def record_shard(
    tools: RecordingContext,
    task: ShardTask,
    *,
    device: Device | None = None,
    check: Callable[[], None],
    done: Callable[[int], None] = lambda _rows: None,
) -> StoredRecords:
    """Store the records of a shard: the same bytes in every process, on one kind of device.

    Parameters
    ----------
    device
        The device that the model runs on; by default the first.
    check
        Called between batches and while waiting for a model; raises to stop.
    done
        Called with the number of rows of each batch.

    Raises
    ------
    ServiceError
        If a row breaks a rule, the ONNX model does not answer, or there is no space.
    """
    record = _recorder(tools, task, device, check)
    parts = []
    with tools.artifacts.local_path(task.shard.key, task.shard.sha256) as path:
        shard = replace(read_shard(path), start=task.start)
    for start in range(0, len(shard.labels), BATCH_SAMPLES):
        check()
        batch = shard.rows(slice(start, start + BATCH_SAMPLES))
        parts.append(record(batch))
        done(len(batch.labels))
    provider = "" if task.resolved is None else (device or tools.runners.device()).provider
    return store_records(
        tools.artifacts, task.files, task.role, task.start, concatenate(parts), provider=provider
    )


def _recorder(
    tools: RecordingContext, task: ShardTask, device: Device | None, check: Callable[[], None]
) -> Recorder:
    """Return a function that makes records: by a model in a child process, or from outputs."""
    resolved = task.resolved
    if resolved is None:
        return scores_recorder(top_k=task.top_k, seed=task.seed, threshold=task.decision_threshold)
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
        return records.with_supplied(batch.supplied).with_design(batch.design)

    return record


def scores_recorder(*, top_k: Sequence[int], seed: int, threshold: float | None = None) -> Recorder:
    """Return a function that makes records from logits, probabilities or pairs."""

    def record(batch: Batch) -> Records:
        ((kind, values),) = batch.arrays.items()
        if kind == PAIRS:
            records = build_pair_records(
                values,
                batch.labels == CORRECT,
                as_uncertainty(batch.supplied[SCORE]),
                seed=seed,
            )
            return records.with_design(batch.design)
        records = build_records(
            log_scores(values, "logits" if kind == "logits" else "probabilities"),
            batch.labels,
            tie_keys=tie_keys(values, seed),
            top_k=top_k,
            logits=kind == "logits",
            threshold=threshold,
        )
        return records.with_supplied(batch.supplied).with_design(batch.design)

    return record
