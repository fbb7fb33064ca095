"""Start of a calibration: the upload is checked, stored and queued, or only tried.

A refit is a calibration job as well: see `service.bins.refit`.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TypeAlias

import numpy as np

import models
from howsure.report.findings import documented
from howsure.statistics.bins.intervals import proportion_interval
from howsure.statistics.effective import effective_share
from howsure.statistics.plain import to_plain
from howsure.statistics.records.records import Records
from service.access.quotas import enforce_storage_quota
from service.calibrations.findings import (
    check_strict,
    examined_rows,
    findings_at_start,
    findings_of_sample,
)
from service.calibrations.manage import library_versions
from service.calibrations.schemas import DryRun, RunCost, SampleAccuracy
from service.calibrations.seen_inputs import SeenInputs
from service.calibrations.upload.check_upload import CheckedUpload, check_upload
from service.calibrations.upload.upload_form import CalibrationUpload
from service.http.uploads import SpooledFile
from service.jobs.acceptance import CallContext, accepted, deleted_on_failure
from service.runner.messages.dataset import Batch, join_batches, shard_rows
from service.runner.model_description import ModelRuns
from service.runner.set_reader import UploadedSet
from service.storage.artifact_keys import JobFiles, keys_of
from service.storage.artifact_rows import NewArtifact
from service.storage.artifact_store import ArtifactStore
from service.storage.calibrations import CalibrationRepository
from service.storage.shards import shard_buffers
from service.workspace import Workspace

ACCURACY_LEVEL = 0.95  # of the interval in a dry run

# What is called with each shard of a set.
_Seen: TypeAlias = dict[models.ArtifactRole, Callable[[Batch], None]]


def start_calibration(ctx: CallContext, upload: CalibrationUpload) -> uuid.UUID:
    """Check the upload, store its files and queue a calibration; return the calibration's id.

    Raises
    ------
    InvalidInput
        If a part breaks a rule, or the configuration is strict about a finding.
    StorageFull, StorageLimitReached
        If no space is left, or the tenant may store no more.
    JobLimitReached
        If the tenant has too many unfinished jobs.
    """
    with ExitStack() as stack:
        checked = check_upload(ctx.workspace, ctx.tenant_id, upload, stack)
        return _queue(ctx, checked)


def _queue(ctx: CallContext, checked: CheckedUpload) -> uuid.UUID:
    """Store the files, then the row that refers to them; a failure leaves neither.

    Findings come between: the samples for them are collected while the files are stored.
    """
    calibration_id, artifacts = uuid.uuid4(), ctx.workspace.artifacts
    with deleted_on_failure(artifacts, keys_of(calibration_id)):
        spread = _SpreadRows(checked.sets["calibration"], examined_rows(checked))
        inputs = SeenInputs(checked.onnx_model)
        seen: _Seen = {"calibration": _both(spread.add, inputs.add), "evaluation": inputs.compare}
        files = _stored(artifacts, calibration_id, checked, seen)
        kept = list(enforce_storage_quota(ctx.workspace.database, ctx.tenant_id, ctx.limits, files))
        findings = findings_at_start(ctx.workspace, checked, spread.rows, inputs.unlike)
        check_strict(findings, checked.config["strict"])
        row = models.Calibration(
            id=calibration_id,
            name=str(checked.config["name"]),
            config=checked.config,
            data=dict(checked.data) | inputs.described(),
            onnx_model=checked.onnx_model,
            versions=library_versions(),
            warnings=[*checked.warnings, *inputs.notes],
            findings=to_plain(findings),
        )
        with accepted(ctx, calibration_id) as session:
            CalibrationRepository(session, ctx.tenant_id).add(row, kept)
    return calibration_id


def _stored(
    artifacts: ArtifactStore,
    calibration_id: uuid.UUID,
    checked: CheckedUpload,
    seen: _Seen,
) -> Iterator[NewArtifact]:
    """Store the files of a calibration; yield each once it is stored.

    ``seen`` is called with each shard of its set, the calibration set first.
    """
    upload = checked.upload
    roles: dict[models.ArtifactRole, list[SpooledFile]] = {
        "model": list(upload.onnx_models),
        "model_data": list(upload.companions),
    }
    for role, files in roles.items():
        for position, file in enumerate(files):
            key = f"calibrations/{calibration_id}/{role}-{position}"
            stored = artifacts.put_file(key, file.path)
            yield NewArtifact(role, position, file.label, key, stored.sha256, stored.size)
    shards = JobFiles.of(calibration_id)
    for role, (file, _) in upload.sets.items():
        yield from store_shards(
            artifacts, shards, checked.sets[role], role=role, label=file.label, seen=seen[role]
        )


def store_shards(
    artifacts: ArtifactStore,
    files: JobFiles,
    dataset: UploadedSet,
    *,
    role: models.ArtifactRole,
    label: str,
    seen: Callable[[Batch], None] | None = None,
) -> Iterator[NewArtifact]:
    """Store an open set, one shard at a time; yield each stored shard.

    Every value is read and checked here. ``seen`` is called with each shard.

    Raises
    ------
    InvalidDataset
        If a value breaks a rule.
    StorageFull
        If no space is left.
    """
    labelled, size = dataset.info.labelled, shard_rows(dataset.info)
    for batch in dataset.shards():
        if seen is not None:
            seen(batch)
        key, position = files.shard(role, batch.start), batch.start // size
        stored = artifacts.put_buffers(key, shard_buffers(batch, labelled=labelled))
        del batch  # frees its memory before the next one, which is as large
        yield NewArtifact(role, position, label, key, stored.sha256, stored.size)


def dry_run(workspace: Workspace, tenant_id: uuid.UUID, upload: CalibrationUpload) -> DryRun:
    """Check an upload as a calibration would, down to its last row, and store nothing.

    Findings are judged on 256 samples spread evenly over the set, or fewer where each is large or
    takes many passes. Those that count labels are judged on all
    labels; those that need the answer to every sample wait for the calibration itself.

    Raises
    ------
    InvalidInput, InferenceFailed
        As `start_calibration`, strict findings included.
    """
    with ExitStack() as stack:
        checked = check_upload(workspace, tenant_id, upload, stack)
        spread = _SpreadRows(checked.sets["calibration"], examined_rows(checked))
        inputs = SeenInputs(checked.onnx_model)
        n_bytes = _read(checked.sets["calibration"], _both(spread.add, inputs.add))
        if "evaluation" in checked.sets:
            n_bytes += _read(checked.sets["evaluation"], inputs.compare)
        findings, records = findings_of_sample(workspace, checked, spread.rows, inputs.unlike)
        check_strict(findings, checked.config["strict"])
        model = dict(checked.onnx_model or {})
        # These are the costs of each measure; `cost` has those of a sample.
        model.pop("costs", None)
        return DryRun(
            accuracy=_accuracy(records),
            findings=documented(findings),
            cost=_cost(workspace, checked, records, n_bytes),
            data=dict(checked.data),
            model=model or None,
            config=dict(checked.config),
            warnings=checked.warnings,
        )


class _SpreadRows:
    """Samples spread evenly over a set, because sets are often sorted by class."""

    def __init__(self, dataset: UploadedSet, n_rows: int) -> None:
        last = dataset.info.n_samples - 1
        self._index = np.unique(np.linspace(0, last, n_rows).astype(np.int64))
        self._parts: list[Batch] = []

    def add(self, batch: Batch) -> None:
        """Keep the samples that are in the next batch of the set."""
        index = self._index - batch.start
        self._parts.append(batch.rows(index[(index >= 0) & (index < len(batch.labels))]))

    @property
    def rows(self) -> Batch:
        """The samples, once the whole set was added."""
        return join_batches(self._parts)


def _both(*calls: Callable[[Batch], None]) -> Callable[[Batch], None]:
    def call(batch: Batch) -> None:
        for one in calls:
            one(batch)

    return call


def _read(dataset: UploadedSet, seen: Callable[[Batch], None]) -> int:
    """Read a whole set, and return its size in bytes; ``seen`` is called with each shard."""
    n_bytes = 0
    for batch in dataset.shards():
        arrays = [*batch.arrays.values(), *batch.supplied.values(), batch.labels]
        n_bytes += sum(array.nbytes for array in arrays)
        seen(batch)
    return n_bytes


def _accuracy(records: Records) -> SampleAccuracy:
    hits, n = records.hits(1), records.n_samples
    n_hits, found = int(hits.sum()), effective_share(hits, records.design)
    interval = proportion_interval(n_hits, n, ACCURACY_LEVEL, found)
    value = n_hits / n if found is None else found.share
    return SampleAccuracy(value=value, interval=interval, n_samples=n)


def _cost(
    workspace: Workspace, checked: CheckedUpload, records: Records, set_bytes: int
) -> RunCost:
    n, model, upload = checked.n_samples, checked.model, checked.upload
    runs = ModelRuns(0, None) if model is None else model.all_runs
    a_record = sum(array.nbytes for array in records.to_arrays().values()) / records.n_samples
    return RunCost(
        samples=n,
        passes=runs.passes,
        rows=n * runs.passes,
        ms_per_row=runs.ms_per_row,
        seconds=None if runs.ms_per_row is None else n * runs.ms_per_row / 1e3,
        device=None if model is None else workspace.runners.device().name,
        stored_bytes={
            "model": sum(file.size for file in (*upload.onnx_models, *upload.companions)),
            "sets": set_bytes,
            "records": round(n * a_record),
        },
    )
