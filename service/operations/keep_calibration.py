"""Keep an upload that was found good: its files, and the row of the queued calibration."""

import uuid
from collections.abc import Iterator, Sequence

import models
from service.core.findings import Finding
from service.errors import OutcomeUnknown
from service.operations.audit import accept
from service.operations.checked_upload import CheckedUpload
from service.operations.findings_of_records import plain_findings
from service.operations.keep_set import keep_shards
from service.operations.tenants.quotas import hold_to_limits, while_there_is_room
from service.operations.uploads import UploadedFile
from service.operations.versions import library_versions
from service.operations.workspace import Workspace
from service.storage.artifacts import ArtifactStore
from service.storage.calibrations import CalibrationRepository, NewArtifact
from service.storage.idempotency_keys import keep_key
from service.storage.job_files import JobFiles


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
        kept = list(while_there_is_room(workspace.database, tenant_id, limits, stored))
        with workspace.database.session(is_news=False) as session:
            CalibrationRepository(session, tenant_id).create(
                calibration_id,
                name=str(checked.config["name"]),
                config=checked.config,
                data=checked.data,
                onnx_model=checked.onnx_model,
                versions=library_versions(),
                artifacts=kept,
                warnings=checked.warnings,
                findings=plain_findings(findings),
            )
            accept(checked.upload.act, session, calibration_id)
            keep_key(session, tenant_id, checked.upload.request, calibration_id)
            hold_to_limits(session, tenant_id, limits)
    except OutcomeUnknown:
        # There may be a row that refers to them; if there is none, they are swept.
        raise
    except BaseException:
        workspace.artifacts.delete(workspace.artifacts.keys(f"calibrations/{calibration_id}"))
        raise
    workspace.doorbell.release()
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
