"""Checks of a job's status before it is cancelled, deleted or used."""

from sqlalchemy.orm import Session

from models import UNFINISHED, Job, JobStatus, database_now
from service.errors import Conflict


def request_end(session: Session, row: Job, title: str) -> None:
    """Cancel a queued job, or request a running one to stop. The row must be locked.

    Raises
    ------
    Conflict
        If it has finished otherwise; the message begins with ``title``.
    """
    if row.status in ("succeeded", "failed"):
        raise Conflict(f"{title} has already {row.status}.")
    if row.status == "queued":
        row.status = "cancelled"
        row.finished_at = database_now()
    row.cancel_requested = True
    session.flush()
    session.refresh(row, ["finished_at"])


def require_finished(status: JobStatus, title: str) -> None:
    """Refuse a job that is queued or running.

    Raises
    ------
    Conflict
        If it is queued or running.
    """
    if status in UNFINISHED:
        raise Conflict(f"{title} is {status}: cancel it first.")


def require_succeeded(status: JobStatus, title: str) -> None:
    """Refuse a job that has not succeeded.

    Raises
    ------
    Conflict
        If it has another status.
    """
    if status != "succeeded":
        raise Conflict(f"{title} is not ready: it is {status}.")
