"""Which models there are: a calibration's name is a model's, and its version is that model's."""

import uuid
from collections.abc import Iterator
from typing import Any

import models
from service.operations.manage_calibrations import list_calibrations
from service.operations.workspace import Workspace
from service.storage.calibrations import CalibrationRef, CalibrationRepository
from service.storage.references import Reference, parse_reference

PAGE = 200


def reference_of(name: str, version: str | None) -> str:
    """Return the reference of a model, by default of the version that its name means.

    Raises
    ------
    NotFound
        If this is no name: an id, say, or a name and version in one.
    """
    if parse_reference(name).name != name:
        raise Reference(name).not_found()
    return name if version is None else f"{name}@{version}"


def ready_model(workspace: Workspace, tenant_id: uuid.UUID, reference: str) -> CalibrationRef:
    """Return which calibration answers.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, or it has not succeeded.
    """
    with workspace.database.reading() as session:
        return CalibrationRepository(session, tenant_id).resolve(reference)


def ready_models(
    workspace: Workspace, tenant_id: uuid.UUID, name: str | None = None
) -> list[CalibrationRef]:
    """Return all that can answer, or those of one name, by name and version."""
    rows = _rows(workspace, tenant_id, name=name, status="succeeded")
    return [CalibrationRef(row.id, row.name, row.version) for row in rows]


def ready_versions(workspace: Workspace, tenant_id: uuid.UUID, name: str) -> list[str]:
    """Return the versions of a model that can answer, the oldest first."""
    return [str(ref.version) for ref in ready_models(workspace, tenant_id, name)]


def repository_index(
    workspace: Workspace, tenant_id: uuid.UUID, *, ready_only: bool
) -> list[dict[str, Any]]:
    """Return every version of every model, and whether it can answer."""
    rows = _rows(workspace, tenant_id, status="succeeded" if ready_only else None)
    return [
        {
            "name": row.name,
            "version": str(row.version),
            "state": "READY" if row.status == "succeeded" else "UNAVAILABLE",
            "reason": "" if row.status == "succeeded" else row.status,
        }
        for row in rows
    ]


def _rows(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    *,
    name: str | None = None,
    status: models.JobStatus | None = None,
) -> list[models.Calibration]:
    pages = _pages(workspace, tenant_id, name, status)
    return sorted(pages, key=lambda row: (row.name, row.version))


def _pages(
    workspace: Workspace, tenant_id: uuid.UUID, name: str | None, status: models.JobStatus | None
) -> Iterator[models.Calibration]:
    cursor: str | None = None
    while True:
        rows, cursor = list_calibrations(
            workspace, tenant_id, limit=PAGE, cursor=cursor, name=name, status=status
        )
        yield from rows
        if cursor is None:
            return
