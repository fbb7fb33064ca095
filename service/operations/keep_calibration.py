"""Keep an upload that was found good: its files, and the row of the queued calibration."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import models
from service.datasets import Dataset
from service.errors import OutcomeUnknown
from service.operations.keep_set import keep_shards
from service.operations.uploads import CalibrationUpload, UploadedFile
from service.operations.versions import library_versions
from service.operations.workspace import Workspace
from service.storage.artifacts import ArtifactStore
from service.storage.calibrations import CalibrationRepository, NewArtifact
from service.storage.idempotency_keys import keep_key
from service.storage.job_files import JobFiles


@dataclass(frozen=True)
class UploadedSets:
    """The sets of an upload, open for reading."""

    calibration: Dataset
    evaluation: Dataset | None


def keep_calibration(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    upload: CalibrationUpload,
    sets: UploadedSets,
    config: dict[str, Any],
    data: dict[str, Any],
    onnx_model: dict[str, Any] | None,
    warnings: list[str],
) -> uuid.UUID:
    """Store the files, then the row that refers to them, queued; a failure leaves neither.

    Raises
    ------
    InvalidDataset
        If a value of a set breaks a rule: each is read here.
    StorageFull
        If no space is left.
    """
    calibration_id = uuid.uuid4()
    try:
        kept = list(_stored(workspace.artifacts, calibration_id, upload, sets))
        with workspace.database.session(is_news=False) as session:
            CalibrationRepository(session, tenant_id).create(
                calibration_id,
                name=str(config["name"]),
                config=config,
                data=data,
                onnx_model=onnx_model,
                versions=library_versions(),
                artifacts=kept,
                warnings=warnings,
            )
            keep_key(session, tenant_id, upload.request, calibration_id)
    except OutcomeUnknown:
        # There may be a row that refers to them; if there is none, they are swept.
        raise
    except BaseException:
        workspace.artifacts.delete(workspace.artifacts.keys(f"calibrations/{calibration_id}"))
        raise
    workspace.doorbell.release()
    return calibration_id


def _stored(
    artifacts: ArtifactStore,
    calibration_id: uuid.UUID,
    upload: CalibrationUpload,
    sets: UploadedSets,
) -> Iterator[NewArtifact]:
    """Store what a calibration needs, and yield each file once it is there."""
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
