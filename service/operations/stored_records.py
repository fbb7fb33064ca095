"""The records that a calibration keeps."""

from typing import Any, cast

import models
from service.core.records import Records
from service.errors import Conflict
from service.operations.record_files import join_records
from service.operations.workspace import Workspace

# Which entry of a calibration's data tells how many samples a set has.
_SAMPLES = {"records": "samples", "evaluation_records": "evaluation_samples"}


def load_records(
    workspace: Workspace, row: models.Calibration, role: models.ArtifactRole
) -> Records | None:
    """Return the records a calibration keeps under a role, or None where it keeps none.

    Raises
    ------
    ArtifactDamaged
        If they are not what was stored.
    """
    parts = [found for found in row.artifacts if found.role == role]
    if not parts:
        return None
    parts.sort(key=lambda part: part.position)
    n_samples = cast("dict[str, Any]", row.data)[_SAMPLES[role]]
    return join_records(workspace.artifacts, parts, n_samples=n_samples)


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
