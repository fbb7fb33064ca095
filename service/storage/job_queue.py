"""The queue of calibrations: a calibration's row is its job, held by a lease that must be renewed.

Whoever claims a job gets an attempt number; owner and attempt together are the fencing token that
every later statement carries, so that an owner whose lease was lost can change nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.orm import Session

from models import Base, Calibration, database_now
from service.storage.artifact_rows import NewArtifact
from service.storage.database import Database

MAX_ATTEMPTS = 3


class LeaseLost(Exception):
    """The job belongs to another owner by now, or to none."""


class JobSignal(Enum):
    """What the owner of a job is told when it gives a sign of life."""

    GO_ON = "go on"
    CANCEL = "cancel"
    LOST = "lost"


@dataclass(frozen=True)
class ClaimedJob:
    """A calibration to run, and the right to do so."""

    calibration_id: UUID
    tenant_id: UUID
    attempt: int


class JobQueue:
    """The queue as one owner sees it; owners must differ, also from one start to the next."""

    def __init__(self, database: Database, owner: str, lease_seconds: float) -> None:
        self.owner = owner
        self.lease_seconds = lease_seconds
        self._database = database

    def claim(self) -> ClaimedJob | None:
        """Take the oldest job that is queued, or whose owner gave no sign of life in time."""
        with self._database.session() as session:
            while True:
                row = session.execute(
                    select(
                        Calibration.id,
                        Calibration.tenant_id,
                        Calibration.attempt,
                        Calibration.cancel_requested,
                        Calibration.progress_stage,
                    )
                    .where(_claimable())
                    .order_by(Calibration.created_at, Calibration.id)
                    .limit(1)
                    .with_for_update(skip_locked=True)
                ).first()
                if row is None:
                    return None
                if row.cancel_requested:
                    _finish(session, row.id, status="cancelled")
                elif row.attempt >= MAX_ATTEMPTS:
                    error = _died(row.attempt, row.progress_stage)
                    _finish(session, row.id, status="failed", error=error)
                else:
                    self._lease(session, row.id, row.attempt + 1)
                    return ClaimedJob(row.id, row.tenant_id, row.attempt + 1)

    def take_over(self) -> int:
        """Let every running job be claimed at once; return how many there are.

        Only for the one process that may run jobs on a SQLite file: whoever ran them is dead.
        """
        with self._database.session() as session:
            running = Calibration.status == "running"
            count = session.scalar(select(func.count()).where(running))
            session.execute(update(Calibration).where(running).values(lease_until=database_now()))
        return count or 0

    def renew(self, job: ClaimedJob) -> JobSignal:
        """Prolong the lease."""
        return self._sign_of_life(job)

    def report_progress(self, job: ClaimedJob, stage: str, done: int, total: int) -> JobSignal:
        """Say how far the job is, and prolong the lease. Each call waits for the disk."""
        return self._sign_of_life(
            job, progress_stage=stage, progress_done=done, progress_total=total
        )

    def publish(
        self,
        job: ClaimedJob,
        *,
        rows: Sequence[Base],
        artifacts: Sequence[NewArtifact],
        **values: object,
    ) -> None:
        """Publish the results and finish the job: all of it becomes visible at once, or nothing.

        ``values`` are columns of the calibration, such as ``accuracy`` and ``serve``.

        Raises
        ------
        LeaseLost
            If the job is no longer this owner's; nothing is published then.
        """
        with self._database.session() as session:
            if self._held(session, job) is None:
                raise LeaseLost
            session.add_all(rows)
            session.add_all(
                artifact.row(job.tenant_id, job.calibration_id) for artifact in artifacts
            )
            _finish(session, job.calibration_id, status="succeeded", **values)

    def fail(self, job: ClaimedJob, error: dict[str, object]) -> bool:
        """Finish the job as failed, with the reason; False if it is no longer this owner's."""
        return self._end(job, status="failed", error=error)

    def cancel(self, job: ClaimedJob) -> bool:
        """Finish the job as cancelled; False if it is no longer this owner's."""
        return self._end(job, status="cancelled")

    def release(self, job: ClaimedJob) -> bool:
        """Hand the job back unfinished; False if it is no longer this owner's.

        The attempt does not count: attempts count deaths, and this owner is alive. Its number is
        given out again, to nobody's harm: a stale owner's number is always one that was passed.
        """
        with self._database.session() as session:
            if self._held(session, job) is None:
                return False
            _set(session, job.calibration_id, status="queued", attempt=job.attempt - 1, **_NO_LEASE)
            return True

    def _lease(self, session: Session, calibration_id: UUID, attempt: int) -> None:
        _set(
            session,
            calibration_id,
            status="running",
            attempt=attempt,
            lease_owner=self.owner,
            lease_until=database_now(self.lease_seconds),
            started_at=func.coalesce(Calibration.started_at, database_now()),
            progress_stage=None,
            progress_done=0,
            progress_total=0,
        )

    def _sign_of_life(self, job: ClaimedJob, **progress: object) -> JobSignal:
        with self._database.session() as session:
            cancel_requested = self._held(session, job)
            if cancel_requested is None:
                return JobSignal.LOST
            lease_until = database_now(self.lease_seconds)
            _set(session, job.calibration_id, lease_until=lease_until, **progress)
            return JobSignal.CANCEL if cancel_requested else JobSignal.GO_ON

    def _end(self, job: ClaimedJob, **values: object) -> bool:
        with self._database.session() as session:
            if self._held(session, job) is None:
                return False
            _finish(session, job.calibration_id, **values)
            return True

    def _held(self, session: Session, job: ClaimedJob) -> bool | None:
        """Lock the job and return whether its end is wanted; None if it is not this owner's."""
        return session.scalars(
            select(Calibration.cancel_requested)
            .where(
                Calibration.id == job.calibration_id,
                Calibration.status == "running",
                Calibration.lease_owner == self.owner,
                Calibration.attempt == job.attempt,
            )
            .with_for_update()
        ).one_or_none()


_NO_LEASE: dict[str, object] = {"lease_owner": None, "lease_until": None}


def _claimable() -> ColumnElement[bool]:
    abandoned = and_(Calibration.status == "running", Calibration.lease_until <= database_now())
    return or_(Calibration.status == "queued", abandoned)


def _set(session: Session, calibration_id: UUID, **values: object) -> None:
    session.execute(update(Calibration).where(Calibration.id == calibration_id).values(**values))


def _finish(session: Session, calibration_id: UUID, **values: object) -> None:
    _set(session, calibration_id, finished_at=database_now(), **_NO_LEASE, **values)


def _died(attempts: int, stage: str | None) -> dict[str, object]:
    where = "before its first stage" if stage is None else f"last seen in stage {stage!r}"
    return {
        "type": "urn:howsure:problem:worker-died",
        "title": "Worker died",
        "detail": f"The process that ran this calibration died {attempts} times, {where}.",
        "errors": [],
    }
