"""Reading, listing, cancelling, promoting and deleting of calibrations."""

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TypeVar
from uuid import UUID

import models
from service.access.audit_log import record_success
from service.jobs.acceptance import CallContext
from service.storage.calibrations import CalibrationRepository
from service.storage.overview import JobRow, NameRow, job_rows, name_rows
from service.workspace import Workspace

Result = TypeVar("Result")

LIBRARIES = ("howsure", "numpy", "scipy", "onnx", "onnxruntime-gpu", "onnxruntime")


@lru_cache(maxsize=1)
def library_versions() -> dict[str, str]:
    """Return the versions of Python and of the numeric libraries."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


MOST_NAMES = 100
MOST_JOBS = 100


@dataclass(frozen=True)
class Overview:
    """Names and jobs; ``is_cut`` tells whether there are more names than are shown."""

    names: list[NameRow]
    jobs: list[JobRow]
    is_cut: bool


def overview(workspace: Workspace, tenant_id: UUID, *, search: str = "") -> Overview:
    """Return one row per name that contains a text, last changed first, and the unfinished jobs."""
    with workspace.database.reading(tenant_id) as session:
        names = name_rows(session, tenant_id, limit=MOST_NAMES + 1, search=search)
        jobs = job_rows(session, tenant_id, limit=MOST_JOBS)
    return Overview(names[:MOST_NAMES], jobs, is_cut=len(names) > MOST_NAMES)


def jobs_under_way(workspace: Workspace, tenant_id: UUID) -> list[JobRow]:
    """Return the unfinished jobs, oldest first."""
    with workspace.database.reading(tenant_id) as session:
        return job_rows(session, tenant_id, limit=MOST_JOBS)


def get_calibration(workspace: Workspace, tenant_id: UUID, reference: str) -> models.Calibration:
    """Return the calibration that an id, a name or ``name@version`` means."""
    with workspace.database.reading(tenant_id) as session:
        return CalibrationRepository(session, tenant_id).find(reference, with_files=False)


def list_calibrations(
    workspace: Workspace,
    tenant_id: UUID,
    *,
    limit: int,
    cursor: str | None,
    name: str | None,
    status: models.JobStatus | None,
) -> tuple[Sequence[models.Calibration], str | None]:
    """Return a page of calibrations, newest first, and the cursor of the next page."""
    with workspace.database.reading(tenant_id) as session:
        return CalibrationRepository(session, tenant_id).page(
            cursor=cursor, limit=limit, name=name, status=status
        )


def cancel_calibration(ctx: CallContext, reference: str) -> models.Calibration:
    """Ask a queued or running calibration to stop."""
    return _change(ctx, reference, CalibrationRepository.request_cancel)[1]


def promote_calibration(ctx: CallContext, reference: str) -> models.Calibration:
    """Let the name of a calibration mean this version; nothing is written if it does."""
    with ctx.workspace.database.reading(ctx.tenant_id) as session:
        calibrations = CalibrationRepository(session, ctx.tenant_id)
        row = calibrations.find(reference, with_files=False)
        if calibrations.promoted_versions([row.name]).get(row.name) == row.version:
            return row
    return _change(ctx, reference, CalibrationRepository.promote)[1]


def _change(
    ctx: CallContext, reference: str, change: Callable[[CalibrationRepository, UUID], Result]
) -> tuple[UUID, Result]:
    """Change the calibration that a reference means; return its id and the result."""
    with ctx.workspace.database.session(ctx.tenant_id) as session:
        repository = CalibrationRepository(session, ctx.tenant_id)
        calibration_id = repository.find(reference, with_files=False).id
        result = change(repository, calibration_id)
        record_success(ctx.event, session, calibration_id)
    return calibration_id, result


def delete_calibration(ctx: CallContext, reference: str) -> None:
    """Delete a finished calibration; a read that has begun may still use its files."""
    ctx.workspace.served.pop(_change(ctx, reference, CalibrationRepository.delete)[0])
