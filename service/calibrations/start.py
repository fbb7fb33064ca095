"""Store an uploaded set as shards."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import models
from howsure.statistics.findings import FINDINGS, Finding, run_checks
from howsure.statistics.records.records import Records
from service.access.audit_log import record_success
from service.access.quotas import enforce_quotas, enforce_storage_quota
from service.calibrations.findings import (
    check_strict,
    evidence_of,
    findings_at_start,
    looked_at_rows,
    plain_findings,
    records_of_rows,
    rescaled_rows,
)
from service.calibrations.manage import library_versions
from service.calibrations.upload import CheckedUpload, check_upload
from service.calibrations.uploaded_files import CalibrationUpload, UploadedFile
from service.errors import OutcomeUnknown
from service.runner.messages.dataset import Batch
from service.runner.model_description import ModelRuns, runs_of
from service.runner.set_reader import UploadedSet
from service.storage.artifact_keys import JobFiles
from service.storage.artifact_rows import NewArtifact
from service.storage.artifact_store import ArtifactStore
from service.storage.calibrations import CalibrationRepository
from service.storage.idempotency_keys import keep_key
from service.storage.shards import shard_buffers, shard_rows
from service.workspace import Workspace


def keep_shards(
    artifacts: ArtifactStore,
    files: JobFiles,
    dataset: UploadedSet,
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
    labelled, size = dataset.info.labelled, shard_rows(dataset.info)
    for batch in dataset.shards():
        key, position = files.shard(role, batch.start), batch.start // size
        stored = artifacts.put_buffers(key, shard_buffers(batch, labelled=labelled))
        del batch  # before the next one comes, which is as large
        yield NewArtifact(role, position, label, key, stored.sha256, stored.size)


def keep_calibration(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    checked: CheckedUpload,
    findings: list[Finding],
) -> uuid.UUID:
    """Store the files, then the row that refers to them, queued; a failure leaves neither.

    Raises
    ------
    InvalidDataset
        If a value of a set breaks a rule: each is read here.
    StorageFull
        If no space is left, or the tenant may store no more.
    JobLimitReached
        If it has as many jobs unfinished as it may.
    """
    calibration_id, limits = uuid.uuid4(), checked.upload.limits
    try:
        stored = _stored(workspace.artifacts, calibration_id, checked)
        kept = list(enforce_storage_quota(workspace.database, tenant_id, limits, stored))
        with workspace.database.session(invalidates_cache=False) as session:
            row = models.Calibration(
                id=calibration_id,
                name=str(checked.config["name"]),
                config=checked.config,
                data=checked.data,
                onnx_model=checked.onnx_model,
                versions=library_versions(),
                warnings=list(checked.warnings),
                findings=plain_findings(findings),
            )
            CalibrationRepository(session, tenant_id).add(row, kept)
            record_success(checked.upload.act, session, calibration_id)
            keep_key(session, tenant_id, checked.upload.request, calibration_id)
            enforce_quotas(session, tenant_id, limits)
    except OutcomeUnknown:
        # There may be a row that refers to them; if there is none, they are swept.
        raise
    except BaseException:
        workspace.artifacts.delete(workspace.artifacts.keys(f"calibrations/{calibration_id}"))
        raise
    workspace.job_available.release()
    return calibration_id


def _stored(
    artifacts: ArtifactStore, calibration_id: uuid.UUID, checked: CheckedUpload
) -> Iterator[NewArtifact]:
    """Store what a calibration needs, and yield each file once it is there."""
    upload, sets = checked.upload, checked.sets
    parts: list[tuple[models.ArtifactRole, Sequence[UploadedFile]]] = [
        ("model", upload.onnx_models),
        ("model_data", upload.companions),
    ]
    for role, files in parts:
        for position, file in enumerate(files):
            key = f"calibrations/{calibration_id}/{role}-{position}"
            stored = artifacts.put_file(key, file.path)
            yield NewArtifact(role, position, file.label, key, stored.sha256, stored.size)
    shards = JobFiles.of(calibration_id)
    yield from keep_shards(
        artifacts, shards, sets.calibration, role="calibration", label=upload.calibration.label
    )
    if upload.evaluation is not None and sets.evaluation is not None:
        yield from keep_shards(
            artifacts, shards, sets.evaluation, role="evaluation", label=upload.evaluation.label
        )


def start_calibration(
    workspace: Workspace, tenant_id: uuid.UUID, upload: CalibrationUpload
) -> uuid.UUID:
    """Check the upload, keep its files and queue a calibration; return the calibration's id.

    Raises
    ------
    InvalidInput
        If a part breaks a rule, or looks wrong in a way that the configuration is strict about;
        nothing is kept then.
    """
    with ExitStack() as stack:
        checked = check_upload(workspace, upload, stack)
        findings = findings_at_start(workspace, checked)
        check_strict(findings, checked.config["strict"])
        return keep_calibration(workspace, tenant_id, checked, findings)


# Rows of a set are no longer told by their numbers here.
LOCATION = "calibration, of samples spread over it"


@dataclass(frozen=True)
class RunCost:
    """What the calibration would take.

    Attributes
    ----------
    samples, rows, passes : int
        Samples of both sets, runs of the whole model for each, and their product.
    ms_per_row : float or None
        Milliseconds of all passes of a sample, as measured on a few of the first.
    seconds : float or None
        Of running the model over all samples on one device; None without a model.
    device : str or None
        On which that was measured.
    stored_bytes : mapping of str to int
        Of the ``model``, of the ``sets`` until the job has ended, and of the ``records``.
    """

    samples: int
    passes: int
    rows: int
    ms_per_row: float | None
    seconds: float | None
    device: str | None
    stored_bytes: Mapping[str, int]


@dataclass(frozen=True)
class DryRun:
    """What an upload turned out to be; the parts are as a calibration's."""

    findings: list[Finding]
    cost: RunCost
    data: Mapping[str, Any]
    onnx_model: Mapping[str, Any] | None
    config: Mapping[str, Any]
    warnings: list[str]


def dry_run(workspace: Workspace, upload: CalibrationUpload) -> DryRun:
    """Check an upload as a calibration would be, down to its last row, and keep nothing.

    Findings are judged on 256 samples spread evenly over the set, or fewer where each takes many
    passes: a set is often sorted by class. Those that count labels are judged on all of them, and
    those that take every answer wait for the calibration itself.

    Raises
    ------
    InvalidInput, InferenceFailed
        As `service.calibrations.start.start_calibration`, strict findings included.
    """
    with ExitStack() as stack:
        checked = check_upload(workspace, upload, stack)
        rows, n_bytes = _spread_rows(checked.sets.calibration, looked_at_rows(checked))
        if checked.sets.evaluation is not None:
            n_bytes += _spread_rows(checked.sets.evaluation, 1)[1]
        rescaled = rescaled_rows(workspace, checked, rows)
        records = (
            records_of_rows(workspace, checked, rows, location=LOCATION)
            if rescaled is None
            else rescaled.as_sent
        )
        seen = {found.code: found for found in checked.found.findings}
        looked = run_checks(evidence_of(checked, records, rescaled))
        seen |= {found.code: found for found in looked}
        findings = [seen[code] for code in FINDINGS if code in seen]
        check_strict(findings, checked.config["strict"])
        return DryRun(
            findings=findings,
            cost=_cost(workspace, checked, records, n_bytes),
            data=checked.data,
            onnx_model=checked.onnx_model,
            config=checked.config,
            warnings=checked.warnings,
        )


def plain_cost(cost: RunCost) -> dict[str, Any]:
    """Return a cost as plain data."""
    return asdict(cost)


def _spread_rows(dataset: UploadedSet, n_rows: int) -> tuple[Batch, int]:
    """Read a whole set; return samples spread evenly over it, and the bytes of all."""
    last = dataset.info.n_samples - 1
    index = np.unique(np.linspace(0, last, n_rows).astype(np.int64))
    parts: list[Batch] = []
    n_bytes = 0
    for batch in dataset.shards():
        arrays = [*batch.arrays.values(), *batch.supplied.values(), batch.labels]
        n_bytes += sum(array.nbytes for array in arrays)
        within = index[(index >= batch.start) & (index < batch.start + len(batch.labels))]
        parts.append(batch.rows(within - batch.start))
    return _joined(parts), n_bytes


def _joined(parts: list[Batch]) -> Batch:
    first = parts[0]
    return Batch(
        start=0,
        arrays={n: np.concatenate([part.arrays[n] for part in parts]) for n in first.arrays},
        labels=np.concatenate([part.labels for part in parts]),
        supplied={n: np.concatenate([part.supplied[n] for part in parts]) for n in first.supplied},
    )


def _cost(
    workspace: Workspace, checked: CheckedUpload, records: Records, set_bytes: int
) -> RunCost:
    n, onnx_model = checked.n_samples, checked.onnx_model
    runs = ModelRuns(0, None)
    if onnx_model is not None:
        measures = [plan["measure"] for plan in onnx_model["resolved"].get("passes", [])]
        runs = runs_of(onnx_model, measures)
    a_record = sum(array.nbytes for array in records.to_arrays().values()) / records.n_samples
    upload = checked.upload
    files = [file.path.stat().st_size for file in (*upload.onnx_models, *upload.companions)]
    return RunCost(
        samples=n,
        passes=runs.passes,
        rows=n * runs.passes,
        ms_per_row=runs.ms_per_row,
        seconds=None if runs.ms_per_row is None else n * runs.ms_per_row / 1e3,
        device=None if onnx_model is None else workspace.runners.device().name,
        stored_bytes={"model": sum(files), "sets": set_bytes, "records": round(n * a_record)},
    )
