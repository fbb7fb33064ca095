"""The queue of jobs of one kind: a job is a row, held by a lease that its owner renews.

A claim gives the job a new attempt number. Owner and attempt are the fencing token of every later
statement, so that an owner that has lost its lease can change nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias
from uuid import UUID

from sqlalchemy import exists, func, or_, select, update
from sqlalchemy.orm import Session

from models import Base, Calibration, Evaluation, JobStatus, bytes_of, database_now
from service.jobs.turn_order import has_claimable_jobs, lock_next_job
from service.storage.artifact_rows import NewArtifact, delete_input_rows
from service.storage.database import Database
from service.storage.fit_results import seal
from service.storage.tenants import ALL_TENANTS

JobTable: TypeAlias = Calibration | Evaluation

MAX_ATTEMPTS = 3


class LeaseLost(Exception):
    """The owner no longer holds the job."""


class JobSignal(Enum):
    """Reply to an owner that renews its lease."""

    GO_ON = "go on"
    CANCEL = "cancel"
    LOST = "lost"


@dataclass(frozen=True)
class ClaimedJob:
    """A claimed calibration, or a claimed evaluation of one."""

    calibration_id: UUID
    tenant_id: UUID
    attempt: int
    evaluation_id: UUID | None = None

    @property
    def id(self) -> UUID:
        """The id of the job's row."""
        return self.calibration_id if self.evaluation_id is None else self.evaluation_id


@dataclass(eq=False, repr=False)
class JobQueue:
    """The jobs of ``table`` as one owner sees them.

    Owners must differ, also from one start of a process to the next.
    """

    database: Database
    owner: str
    lease_seconds: float
    table: type[JobTable] = Calibration

    def claim(self) -> ClaimedJob | None:
        """Claim the next job: a queued one, or a running one whose lease has expired."""
        # Idle workers ask often, and SQLite has one lock for all writers.
        with self.database.reading(ALL_TENANTS) as session:
            if not has_claimable_jobs(session, self.table):
                return None
        with self.database.session(ALL_TENANTS, invalidates_cache=False) as session:
            while (row := self._lock_next(session)) is not None:
                job = _next_attempt(row)
                if row.cancel_requested:
                    self._finish(session, job, status="cancelled")
                elif row.attempt >= MAX_ATTEMPTS:
                    error = _died(row)
                    self._finish(session, job, status="failed", error=error)
                else:
                    self._lease(session, job)
                    return job
        return None

    def take_over(self) -> int:
        """Expire the leases of all running jobs; return their number.

        Only the one process that runs jobs on a SQLite file may do so: the former owner is dead.
        """
        with self.database.session(ALL_TENANTS) as session:
            running = self.table.status == "running"
            count = session.scalar(select(func.count()).where(running))
            session.execute(update(self.table).where(running).values(lease_until=database_now()))
        return count or 0

    def others_wait(self, job: ClaimedJob) -> bool:
        """Tell whether jobs of other tenants are queued, of any kind."""
        with self.database.reading(ALL_TENANTS) as session:
            waiting = (
                exists().where(table.status == "queued", table.tenant_id != job.tenant_id)
                for table in (Calibration, Evaluation)
            )
            return bool(session.scalar(select(or_(*waiting))))

    def renew(self, job: ClaimedJob) -> JobSignal:
        """Renew the lease."""
        return self._sign_of_life(job)

    def report_progress(
        self, job: ClaimedJob, stage: str, done: int, total: int, rate: float | None = None
    ) -> JobSignal:
        """Store the progress and renew the lease. Each call waits for the disk.

        ``rate`` is the progress of the stage per second, if known.
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
        complete: Callable[[Session], None] = lambda _: None,
        **values: object,
    ) -> None:
        """Publish the results and finish the job in one transaction.

        The job's sets are deleted unless ``keep_sets`` is true. ``values`` are columns of the
        job's row, such as ``accuracy`` or ``result``. ``complete`` begins the transaction, and may
        lock the calibration and add to the results what it reads then.

        Raises
        ------
        LeaseLost
            If this owner no longer holds the job; nothing is published then.
        """
        with self.database.session(job.tenant_id) as session:
            complete(session)
            if self._held(session, job) is None:
                raise LeaseLost
            session.add_all(rows)
            session.add_all(
                artifact.row(job.tenant_id, job.calibration_id, job.evaluation_id)
                for artifact in artifacts
            )
            self._finish(session, job, keep_sets=keep_sets, status="succeeded", **values)
            if self.table is Calibration:
                seal(session, job.tenant_id, job.calibration_id)

    def fail(self, job: ClaimedJob, error: dict[str, object]) -> bool:
        """Finish the job as failed, with the reason; False if this owner lost it."""
        return self._end(job, "failed", error)

    def cancel(self, job: ClaimedJob) -> bool:
        """Finish the job as cancelled; False if this owner lost it."""
        return self._end(job, "cancelled", None)

    def release(self, job: ClaimedJob) -> bool:
        """Queue the unfinished job again; False if this owner lost it.

        The attempt does not count: attempts count deaths, and this owner is alive. Reusing its
        number is safe, because the number of a stale owner is always lower.
        """
        with self.database.session(job.tenant_id) as session:
            if self._held(session, job) is None:
                return False
            self._set(session, job, status="queued", attempt=job.attempt - 1, **_NO_LEASE)
            return True

    def _lock_next(self, session: Session) -> JobTable | None:
        if self.table is Calibration:
            return lock_next_job(session, Calibration, _CLAIMED)
        return lock_next_job(session, Evaluation, ("calibration_id", *_CLAIMED))

    def _lease(self, session: Session, job: ClaimedJob) -> None:
        self._set(
            session,
            job,
            status="running",
            attempt=job.attempt,
            lease_owner=self.owner,
            lease_until=database_now(self.lease_seconds),
            started_at=func.coalesce(self.table.started_at, database_now()),
            claimed_at=database_now(),
            progress_stage=None,
            progress_done=0,
            progress_total=0,
            progress_rate=None,
        )

    def _sign_of_life(self, job: ClaimedJob, **progress: object) -> JobSignal:
        with self.database.session(job.tenant_id, invalidates_cache=False) as session:
            cancel_requested = self._held(session, job)
            if cancel_requested is None:
                return JobSignal.LOST
            lease_until = database_now(self.lease_seconds)
            self._set(session, job, lease_until=lease_until, **progress)
            return JobSignal.CANCEL if cancel_requested else JobSignal.GO_ON

    def _end(self, job: ClaimedJob, status: JobStatus, error: dict[str, object] | None) -> bool:
        with self.database.session(job.tenant_id) as session:
            if self._held(session, job) is None:
                return False
            self._finish(session, job, status=status, error=error)
            return True

    def _held(self, session: Session, job: ClaimedJob) -> bool | None:
        """Lock the job and return whether it should be cancelled; None if this owner lost it."""
        return session.scalars(
            select(self.table.cancel_requested)
            .where(
                self.table.id == job.id,
                self.table.status == "running",
                self.table.lease_owner == self.owner,
                self.table.attempt == job.attempt,
            )
            .with_for_update()
        ).one_or_none()

    def _finish(
        self, session: Session, job: ClaimedJob, *, keep_sets: bool = False, **values: object
    ) -> None:
        if not keep_sets:
            delete_input_rows(session, job.tenant_id, job.calibration_id, job.evaluation_id)
        self._set(session, job, finished_at=database_now(), **_NO_LEASE, **values)

    def _set(self, session: Session, job: ClaimedJob, **values: object) -> None:
        if more := bytes_of(values, self.table):
            values["row_bytes"] = self.table.row_bytes + more
        session.execute(update(self.table).where(self.table.id == job.id).values(**values))


_NO_LEASE: dict[str, object] = {"lease_owner": None, "lease_until": None}
_CLAIMED = ("id", "tenant_id", "attempt", "cancel_requested", "progress_stage")


def _next_attempt(row: JobTable) -> ClaimedJob:
    if isinstance(row, Evaluation):
        return ClaimedJob(row.calibration_id, row.tenant_id, row.attempt + 1, row.id)
    return ClaimedJob(row.id, row.tenant_id, row.attempt + 1)


def _died(row: JobTable) -> dict[str, object]:
    stage = row.progress_stage
    where = "before its first stage" if stage is None else f"last seen in stage {stage!r}"
    kind = "evaluation" if isinstance(row, Evaluation) else "calibration"
    return {
        "type": "urn:howsure:problem:worker-died",
        "title": "Worker died",
        "detail": f"The process that ran this {kind} died {row.attempt} times, {where}.",
        "errors": [],
    }
