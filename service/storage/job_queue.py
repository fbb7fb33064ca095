"""The queue of jobs of one kind: a row is its own job, held by a lease that must be renewed.

Whoever claims a job gets an attempt number; owner and attempt together are the fencing token that
every later statement carries, so that an owner whose lease was lost can change nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias
from uuid import UUID

from sqlalchemy import ColumnElement, func, null, select, update
from sqlalchemy.orm import Session

from models import Base, Calibration, Evaluation, Job, JobStatus, database_now
from service.storage.artifact_rows import NewArtifact, forget_sets
from service.storage.database import Database
from service.storage.job_order import lock_next

JobTable: TypeAlias = Calibration | Evaluation

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
    """A calibration to run, or an evaluation of it, and the right to do so."""

    calibration_id: UUID
    tenant_id: UUID
    attempt: int
    evaluation_id: UUID | None = None

    @property
    def id(self) -> UUID:
        """Of the row that is the job."""
        return self.calibration_id if self.evaluation_id is None else self.evaluation_id


class JobQueue:
    """The queue as one owner sees it; owners must differ, also from one start to the next.

    Its jobs are those of ``table``.
    """

    def __init__(
        self,
        database: Database,
        owner: str,
        lease_seconds: float,
        table: type[JobTable] = Calibration,
    ) -> None:
        self.owner = owner
        self.lease_seconds = lease_seconds
        self._database = database
        self._table: type[Job] = table
        known = (table.attempt, table.cancel_requested, table.progress_stage)
        self._columns = (*_job_names(table), *known)

    def claim(self) -> ClaimedJob | None:
        """Take the job whose turn it is: a queued one, or one whose owner gave no sign of life."""
        with self._database.session(is_news=False) as session:
            while (row := lock_next(session, self._table, self._columns)) is not None:
                job = ClaimedJob(
                    row.calibration_id, row.tenant_id, row.attempt + 1, row.evaluation_id
                )
                if row.cancel_requested:
                    self._finish(session, job, status="cancelled")
                elif row.attempt >= MAX_ATTEMPTS:
                    error = _died(self._table, row.attempt, row.progress_stage)
                    self._finish(session, job, status="failed", error=error)
                else:
                    self._lease(session, job)
                    return job
        return None

    def take_over(self) -> int:
        """Let every running job be claimed at once; return how many there are.

        Only for the one process that may run jobs on a SQLite file: whoever ran them is dead.
        """
        with self._database.session() as session:
            running = self._table.status == "running"
            count = session.scalar(select(func.count()).where(running))
            session.execute(update(self._table).where(running).values(lease_until=database_now()))
        return count or 0

    def renew(self, job: ClaimedJob) -> JobSignal:
        """Prolong the lease."""
        return self._sign_of_life(job)

    def report_progress(
        self, job: ClaimedJob, stage: str, done: int, total: int, rate: float | None = None
    ) -> JobSignal:
        """Say how far the job is, and prolong the lease. Each call waits for the disk.

        ``rate`` is what is done of the stage in a second, if that is known.
        """
        return self._sign_of_life(
            job,
            progress_stage=stage,
            progress_done=done,
            progress_total=total,
            progress_rate=rate,
        )

    def publish(
        self,
        job: ClaimedJob,
        *,
        rows: Sequence[Base],
        artifacts: Sequence[NewArtifact],
        keep_sets: bool = False,
        **values: object,
    ) -> None:
        """Publish the results and finish the job: all of it becomes visible at once, or nothing.

        The sets that it was given go, unless they are to be kept. ``values`` are columns of the
        job's row, such as ``accuracy`` or ``result``.

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
                artifact.row(job.tenant_id, job.calibration_id, job.evaluation_id)
                for artifact in artifacts
            )
            self._finish(session, job, keep_sets=keep_sets, status="succeeded", **values)

    def fail(self, job: ClaimedJob, error: dict[str, object]) -> bool:
        """Finish the job as failed, with the reason; False if it is no longer this owner's."""
        return self._end(job, "failed", error)

    def cancel(self, job: ClaimedJob) -> bool:
        """Finish the job as cancelled; False if it is no longer this owner's."""
        return self._end(job, "cancelled", None)

    def release(self, job: ClaimedJob) -> bool:
        """Hand the job back unfinished; False if it is no longer this owner's.

        The attempt does not count: attempts count deaths, and this owner is alive. Its number is
        given out again, to nobody's harm: a stale owner's number is always one that was passed.
        """
        with self._database.session() as session:
            if self._held(session, job) is None:
                return False
            self._set(session, job, status="queued", attempt=job.attempt - 1, **_NO_LEASE)
            return True

    def _lease(self, session: Session, job: ClaimedJob) -> None:
        self._set(
            session,
            job,
            status="running",
            attempt=job.attempt,
            lease_owner=self.owner,
            lease_until=database_now(self.lease_seconds),
            started_at=func.coalesce(self._table.started_at, database_now()),
            claimed_at=database_now(),
            progress_stage=None,
            progress_done=0,
            progress_total=0,
            progress_rate=None,
        )

    def _sign_of_life(self, job: ClaimedJob, **progress: object) -> JobSignal:
        with self._database.session(is_news=False) as session:
            cancel_requested = self._held(session, job)
            if cancel_requested is None:
                return JobSignal.LOST
            lease_until = database_now(self.lease_seconds)
            self._set(session, job, lease_until=lease_until, **progress)
            return JobSignal.CANCEL if cancel_requested else JobSignal.GO_ON

    def _end(self, job: ClaimedJob, status: JobStatus, error: dict[str, object] | None) -> bool:
        with self._database.session() as session:
            if self._held(session, job) is None:
                return False
            self._finish(session, job, status=status, error=error)
            return True

    def _held(self, session: Session, job: ClaimedJob) -> bool | None:
        """Lock the job and return whether its end is wanted; None if it is not this owner's."""
        return session.scalars(
            select(self._table.cancel_requested)
            .where(
                self._table.id == job.id,
                self._table.status == "running",
                self._table.lease_owner == self.owner,
                self._table.attempt == job.attempt,
            )
            .with_for_update()
        ).one_or_none()

    def _finish(
        self, session: Session, job: ClaimedJob, *, keep_sets: bool = False, **values: object
    ) -> None:
        if not keep_sets:
            forget_sets(session, job.calibration_id, job.evaluation_id)
        self._set(session, job, finished_at=database_now(), **_NO_LEASE, **values)

    def _set(self, session: Session, job: ClaimedJob, **values: object) -> None:
        session.execute(update(self._table).where(self._table.id == job.id).values(**values))


_NO_LEASE: dict[str, object] = {"lease_owner": None, "lease_until": None}


def _job_names(
    table: type[JobTable],
) -> tuple[ColumnElement[UUID], ColumnElement[UUID] | ColumnElement[None], ColumnElement[UUID]]:
    """Return the columns that name a job: of which calibration, or of which evaluation of it."""
    tenant_id = table.tenant_id.label("tenant_id")
    if issubclass(table, Evaluation):
        own, calibration_id = table.id.label("evaluation_id"), table.calibration_id
        return calibration_id.label("calibration_id"), own, tenant_id
    return table.id.label("calibration_id"), null().label("evaluation_id"), tenant_id


def _died(table: type[Job], attempts: int, stage: str | None) -> dict[str, object]:
    where = "before its first stage" if stage is None else f"last seen in stage {stage!r}"
    kind = "evaluation" if issubclass(table, Evaluation) else "calibration"
    return {
        "type": "urn:howsure:problem:worker-died",
        "title": "Worker died",
        "detail": f"The process that ran this {kind} died {attempts} times, {where}.",
        "errors": [],
    }
