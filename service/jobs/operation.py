"""Unfinished jobs of all tenants, for whoever operates the service."""

from typing import NamedTuple
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from models import UNFINISHED, Calibration, Evaluation, Tenant
from service.errors import NotFound
from service.jobs.queue import JobTable
from service.storage.calibrations import CalibrationRepository
from service.storage.evaluations import EvaluationRepository


class UnfinishedJob(NamedTuple):
    """A queued or running job and its tenant's name."""

    tenant: str
    row: JobTable


def unfinished_of_all(session: Session) -> list[UnfinishedJob]:
    """Return the queued and running jobs of all tenants, oldest first."""
    names: dict[UUID, str] = {tenant.id: tenant.name for tenant in session.scalars(select(Tenant))}
    rows: list[JobTable] = [
        *session.scalars(select(Calibration).where(Calibration.status.in_(UNFINISHED))),
        *session.scalars(select(Evaluation).where(Evaluation.status.in_(UNFINISHED))),
    ]
    ordered = sorted(rows, key=lambda row: row.created_at)
    return [UnfinishedJob(names[row.tenant_id], row) for row in ordered]


def cancel_of_any(session: Session, job_id: UUID) -> UUID:
    """Cancel a job of any tenant; return the tenant.

    Raises
    ------
    NotFound, Conflict
        If there is no such job, or it has finished.
    """
    calibration = session.get(Calibration, job_id)
    if calibration is not None:
        return (
            CalibrationRepository(session, calibration.tenant_id).request_cancel(job_id).tenant_id
        )
    further = session.get(Evaluation, job_id)
    if further is None:
        raise NotFound(f"there is no job {job_id}; see `howsure tenants jobs`")
    repository = EvaluationRepository(session, further.tenant_id)
    return repository.request_cancel(further.calibration_id, further.name).tenant_id
