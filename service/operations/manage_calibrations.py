"""Read, list, cancel and delete calibrations."""

import uuid
from collections.abc import Iterable, Sequence

import models
from service.operations.audit import Act, accept
from service.operations.job_leftovers import remove_leftovers
from service.operations.workspace import Workspace
from service.storage.calibrations import CalibrationRepository


def get_calibration(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str
) -> models.Calibration:
    """Return the calibration that an id, a name or ``name@version`` means."""
    with workspace.database.reading() as session:
        return CalibrationRepository(session, tenant_id).find(reference, with_files=False)


def list_calibrations(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    *,
    limit: int,
    cursor: str | None,
    name: str | None,
    status: models.JobStatus | None,
) -> tuple[Sequence[models.Calibration], str | None]:
    """Return a page of calibrations, newest first, and the cursor of the next page."""
    with workspace.database.reading() as session:
        return CalibrationRepository(session, tenant_id).page(
            cursor=cursor, limit=limit, name=name, status=status
        )


def cancel_calibration(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str, *, act: Act | None = None
) -> models.Calibration:
    """Ask a queued or running calibration to stop."""
    with workspace.database.session() as session:
        repository = CalibrationRepository(session, tenant_id)
        row = repository.request_cancel(repository.find(reference, with_files=False).id)
        accept(act, session, row.id)
    if row.status == "cancelled":
        remove_leftovers(workspace, tenant_id, row.id)
    return row


def promote_calibration(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str, *, act: Act | None = None
) -> models.Calibration:
    """Let the name of a calibration mean this version of it."""
    with workspace.database.session() as session:
        repository = CalibrationRepository(session, tenant_id)
        row = repository.promote(repository.find(reference, with_files=False).id)
        accept(act, session, row.id)
    return row


def promoted_versions(
    workspace: Workspace, tenant_id: uuid.UUID, names: Iterable[str]
) -> dict[str, int]:
    """Return which version each name was promoted to; names without a promotion are left out."""
    with workspace.database.reading() as session:
        return CalibrationRepository(session, tenant_id).promoted_versions(names)


def delete_calibration(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str, *, act: Act | None = None
) -> None:
    """Delete a finished calibration, then the files that nothing else refers to.

    The row goes first: a crash in between leaves files without a row, which the sweeper removes,
    and never a row without its files.
    """
    with workspace.database.session() as session:
        repository = CalibrationRepository(session, tenant_id)
        row = repository.find(reference, with_files=False)
        calibration_id = row.id
        keys = repository.delete(calibration_id)
        accept(act, session, calibration_id)
    workspace.served.forget(calibration_id)
    workspace.artifacts.delete(keys)
