"""What those who follow jobs are told of them, read for many jobs at once."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from models import Job, JobStatus


@dataclass(frozen=True)
class JobView:
    """Where a job stands, and how far it is."""

    status: JobStatus
    progress_stage: str | None
    progress_done: int
    progress_total: int
    progress_rate: float | None


def job_views(session: Session, table: type[Job], ids: Collection[UUID]) -> Mapping[UUID, JobView]:
    """Return the jobs of these ids; those that are deleted lack."""
    found = session.execute(
        select(
            table.id,
            table.status,
            table.progress_stage,
            table.progress_done,
            table.progress_total,
            table.progress_rate,
        ).where(table.id.in_(ids))
    )
    return {row.id: JobView(*row[1:]) for row in found}


def view_of(row: Job) -> JobView:
    """Return the same of a job that was read as a whole."""
    return JobView(
        row.status,
        row.progress_stage,
        row.progress_done,
        row.progress_total,
        row.progress_rate,
    )
