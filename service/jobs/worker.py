"""Threads that claim jobs and run them."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from service.errors import Overloaded, ServiceError, StorageFull, problem_of
from service.jobs.cleanup import ORPHAN_SECONDS, sweep_until
from service.jobs.progress import JobCancelled, JobInterrupted
from service.jobs.queue import ClaimedJob, JobQueue, JobSignal, JobTable, LeaseLost
from service.storage.file_locks import OwnerLock
from service.untouched_memory import return_freed_memory
from service.workspace import Workspace


class RunJob(Protocol):
    """Runs a claimed job to its end; ``check`` raises to stop it."""

    def __call__(
        self, workspace: Workspace, queue: JobQueue, job: ClaimedJob, *, check: Callable[[], None]
    ) -> None:
        """Run the job and publish its results."""


@dataclass(frozen=True)
class JobKind:
    """A table whose rows are jobs, and the function that runs one."""

    name: str
    table: type[JobTable]
    run: RunJob


RENEWALS_PER_LEASE = 3

log = structlog.get_logger(__name__)


@contextmanager
def renewed_lease(queue: JobQueue, job: ClaimedJob) -> Iterator[threading.Event]:
    """Renew the lease from a separate thread; the event is set when the lease is lost."""
    done, lost = threading.Event(), threading.Event()

    def renew() -> None:
        while not done.wait(queue.lease_seconds / RENEWALS_PER_LEASE):
            try:
                if queue.renew(job) is JobSignal.LOST:
                    lost.set()
                    return
            except Exception as error:  # noqa: BLE001 - the next renewal may succeed
                # The lease outlives two failed renewals. Writing a traceback takes time.
                log.warning("renewal_failed", id=str(job.id), error=repr(error))

    thread = threading.Thread(target=renew, name=f"lease-{job.id}", daemon=True)
    thread.start()
    try:
        yield lost
    finally:
        done.set()
        thread.join()


AGAIN_SECONDS = 1.0
PAUSE_SECONDS = 5.0


@dataclass(frozen=True)
class JobEnding:
    """Records the end of one job that was not published: cancelled, failed or queued again."""

    workspace: Workspace
    queue: JobQueue
    job: ClaimedJob
    stopping: threading.Event

    def _log(self) -> Any:  # noqa: ANN401 - structlog's
        return log.bind(id=str(self.job.id), attempt=self.job.attempt)

    def after(self, error: Exception) -> None:
        """End the job according to the exception that its run raised."""
        if isinstance(error, LeaseLost):
            self._log().warning("lease_lost")
        elif isinstance(error, JobCancelled):
            self._write("job_cancelled", lambda: self.queue.cancel(self.job))
        elif isinstance(error, JobInterrupted) or self.stopping.is_set():
            # A stopping service takes the model away: that is not the job's failure.
            self.requeue()
        elif isinstance(error, Overloaded) and not isinstance(error, StorageFull):
            self._log().warning("job_overloaded", reason=error.message)
            self.requeue()
            self.stopping.wait(PAUSE_SECONDS)
        else:
            self._fail(error)

    def requeue(self) -> None:
        """Queue the job again; the attempt does not count."""
        self._write("job_requeued", lambda: self.queue.release(self.job))

    def _fail(self, error: Exception) -> None:
        if isinstance(error, ServiceError):
            self._log().info("job_fails", reason=error.message)
        else:
            self._log().error("job_fails_unexpectedly", exc_info=error)
        self._write("job_failed", lambda: self.queue.fail(self.job, problem_of(error)))

    def _write(self, event: str, write: Callable[[], bool]) -> None:
        """Record the end, if this owner still holds the job.

        While the database is unreachable, retry for as long as the lease lasts; after that the
        expired lease frees the job.
        """
        until = time.monotonic() + self.queue.lease_seconds
        while True:
            try:
                held = write()
            except Exception as error:  # noqa: BLE001 - the worker must survive any error
                unexpected = None if isinstance(error, ServiceError) else error
                self._log().warning(
                    "end_not_written", end=event, reason=str(error), exc_info=unexpected
                )
            else:
                self._log().info(event if held else "lease_lost")
                return
            if time.monotonic() >= until or self.stopping.wait(AGAIN_SECONDS):
                return


POLL_SECONDS = 1.0
ONE_OWNER = (
    "Another process runs the jobs of this SQLite database. This process takes over when it exits."
)


class Workers:
    """Threads that each run one job at a time.

    On SQLite only the process that holds the owner lock runs jobs. It takes over at once the jobs
    that a dead predecessor left running. On other databases an expired lease frees a job.

    Parameters
    ----------
    kinds
        The kinds of jobs; they take turns.
    """

    def __init__(
        self,
        workspace: Workspace,
        kinds: Sequence[JobKind],
        *,
        count: int,
        owner: str,
        owner_lock: OwnerLock | None,
        orphan_seconds: float = ORPHAN_SECONDS,
    ) -> None:
        self._workspace = workspace
        self._owner_lock = owner_lock
        self._queues = [(kind, workspace.job_queue(owner, kind.table)) for kind in kinds]
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"worker-{i}", daemon=True)
            for i in range(count)
        ]
        self._sweeper = threading.Thread(
            target=sweep_until,
            args=(self._stopping, workspace),
            kwargs={"orphan_seconds": orphan_seconds},
            name="sweeper",
            daemon=True,
        )
        self._owns_store = owner_lock is None
        self._has_waited = False
        self._ownership = threading.Lock()
        self._running: dict[ClaimedJob, JobQueue] = {}

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()
        if self._threads:
            self._sweeper.start()

    def stop(self, timeout: float = 2.0) -> None:
        """Ask the threads to queue their jobs again, and wait for them briefly.

        A job that waits for its model notices only when the model's process ends: end it, then
        call `finish`.
        """
        self._stopping.set()
        for _ in self._threads:
            self._workspace.job_available.release()
        self._join(timeout)

    def finish(self, timeout: float = 3.0) -> None:
        """Wait for the threads, then queue unfinished jobs again and release the owner lock.

        A thread that still computes can no longer publish anything.
        """
        self._join(timeout)
        for job, queue in list(self._running.items()):
            JobEnding(self._workspace, queue, job, self._stopping).requeue()
        if self._owner_lock is not None:
            self._owner_lock.release()

    def _join(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))
        if self._sweeper.is_alive():
            self._sweeper.join(max(until - time.monotonic(), 0.0))

    def _work(self) -> None:
        # The kinds take turns: no kind waits until the queues of the others are empty.
        queues = deque(self._queues)
        while not self._stopping.is_set():
            worked = False
            try:
                worked = self._may_run() and self._run_one(queues)
            except Overloaded as error:
                log.warning("database_away", reason=error.message)
            except Exception:
                # Keep the thread alive; the next job may succeed.
                log.exception("worker_failed")
            if worked:
                return_freed_memory()
            else:
                self._workspace.job_available.acquire(timeout=POLL_SECONDS)

    def _may_run(self) -> bool:
        with self._ownership:
            if self._stopping.is_set():
                return False
            if not self._owns_store and self._owner_lock is not None:
                self._owns_store = self._become_owner(self._owner_lock)
            return self._owns_store

    def _become_owner(self, lock: OwnerLock) -> bool:
        if not lock.try_acquire():
            if not self._has_waited:
                self._has_waited = True
                log.info("waiting_to_run_jobs", reason=ONE_OWNER, lock=str(lock.path))
            return False
        for _, queue in self._queues:
            queue.take_over()
        if self._has_waited:
            log.info("runs_jobs_now")
        return True

    def _run_one(self, queues: deque[tuple[JobKind, JobQueue]]) -> bool:
        """Run a job of the first kind that has one and move that kind last; False if none has."""
        for _ in range(len(queues)):
            kind, queue = queues[0]
            queues.rotate(-1)
            if self._run_next(kind, queue):
                return True
        return False

    def _run_next(self, kind: JobKind, queue: JobQueue) -> bool:
        """Run the next job of a kind; False if there is none."""
        job = queue.claim()
        if job is None:
            return False
        self._running[job] = queue
        log.info("job_started", kind=kind.name, id=str(job.id), attempt=job.attempt)
        try:
            with renewed_lease(queue, job) as lost:
                kind.run(self._workspace, queue, job, check=lambda: self._check(lost))
        except Exception as error:  # noqa: BLE001 - every started job must end
            JobEnding(self._workspace, queue, job, self._stopping).after(error)
        else:
            log.info("job_succeeded", kind=kind.name, id=str(job.id))
        finally:
            self._running.pop(job, None)
        return True

    def _check(self, lost: threading.Event) -> None:
        if self._stopping.is_set():
            raise JobInterrupted
        if lost.is_set():
            raise LeaseLost
