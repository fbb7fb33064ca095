"""Keep an upload that was found good: its files, and the row of the queued calibration."""

import uuid
from typing import Any

import models
from service.operations.uploads import CalibrationUpload, UploadedFile
from service.operations.versions import library_versions
from service.operations.workspace import Workspace
from service.storage.calibrations import CalibrationRepository, NewArtifact


def keep_calibration(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    upload: CalibrationUpload,
    config: dict[str, Any],
    data: dict[str, Any],
    onnx_model: dict[str, Any] | None,
    warnings: list[str],
) -> uuid.UUID:
    """Store the files, then the row that refers to them, queued; a failure leaves neither."""
    calibration_id = uuid.uuid4()
    files: list[tuple[models.ArtifactRole, int, UploadedFile]] = [
        ("model", i, found) for i, found in enumerate(upload.onnx_models)
    ]
    files += [("model_data", i, found) for i, found in enumerate(upload.companions)]
    files.append(("calibration", 0, upload.calibration))
    if upload.evaluation is not None:
        files.append(("evaluation", 0, upload.evaluation))
    kept: list[NewArtifact] = []
    try:
        for role, position, file in files:
            key = f"calibrations/{calibration_id}/{role}-{position}"
            stored = workspace.artifacts.put_file(key, file.path)
            kept.append(NewArtifact(role, position, file.label, key, stored.sha256, stored.size))
        data["sha256"] = next(a.sha256 for a in kept if a.role == "calibration")
        data["evaluation_sha256"] = next((a.sha256 for a in kept if a.role == "evaluation"), None)
        with workspace.database.session() as session:
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
    except BaseException:
        workspace.artifacts.delete([artifact.key for artifact in kept])
        raise
    workspace.doorbell.release()
    return calibration_id
