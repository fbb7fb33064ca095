"""Records of samples as they are kept: one .npz of plain arrays."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO

import numpy as np

import models
from service.core.records import Records
from service.errors import Conflict
from service.operations.workspace import Workspace
from service.storage.calibrations import NewArtifact
from service.storage.job_queue import LeaseLost


def load_records(
    workspace: Workspace, row: models.Calibration, role: models.ArtifactRole
) -> Records | None:
    """Return the records a calibration keeps under a role, or None where it keeps none.

    Raises
    ------
    ArtifactDamaged
        If they are not what was stored.
    """
    artifact = next((found for found in row.artifacts if found.role == role), None)
    if artifact is None:
        return None
    content = workspace.artifacts.get_bytes(artifact.key, artifact.sha256)
    with np.load(BytesIO(content), allow_pickle=False) as arrays:
        return Records.from_arrays(dict(arrays))


def require_records(row: models.Calibration) -> None:
    """Refuse a finished calibration that was imported: it has tables and no samples.

    Raises
    ------
    Conflict
        If it keeps no records.
    """
    if not any(found.role == "records" for found in row.artifacts):
        raise Conflict(
            f"Calibration {row.name}@{row.version} was imported from bin tables and keeps no "
            "records of samples, which this needs: ask the service that it was exported from, or "
            "calibrate here."
        )


@contextmanager
def kept_records(
    workspace: Workspace,
    calibration_id: uuid.UUID,
    sets: Mapping[models.ArtifactRole, Records],
) -> Iterator[list[NewArtifact]]:
    """Store records; they are removed again if the block finds that its job was lost.

    After any other failure of the block, which publishes them, it is not known whether they are
    referred to by now, so they stay; what nothing refers to is swept.
    """
    kept: list[NewArtifact] = []
    try:
        for role, records in sets.items():
            packed = BytesIO()
            np.savez(packed, allow_pickle=False, **records.to_arrays())
            # An attempt's number may be given out again, so none makes a key unique.
            key = f"calibrations/{calibration_id}/{role}-{uuid.uuid4()}"
            stored = workspace.artifacts.put_bytes(key, packed.getvalue())
            kept.append(NewArtifact(role, 0, f"{role}.npz", key, stored.sha256, stored.size))
        yield kept
    except LeaseLost:
        workspace.artifacts.delete([artifact.key for artifact in kept])
        raise
