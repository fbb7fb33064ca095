"""Threads that claim jobs and run them."""

import threading

import structlog

from service.errors import ServiceError
from service.jobs.kinds import KINDS, JobKind
from service.jobs.lease import renewed_lease
from service.operations.job_progress import JobCancelled, JobInterrupted
from service.operations.problem import problem_of
from service.operations.workspace import Workspace
from service.storage.job_queue import ClaimedJob, JobQueue, LeaseLost
from service.storage.orphans import remove_orphans
from service.storage.owner_lock import OwnerLock

POLL_SECONDS = 1.0

log = structlog.get_logger(__name__)


class Workers:
    """A few threads, each running one job at a time.

    On SQLite only the process that holds the owner lock runs jobs; it takes over at once what a
    dead predecessor left running. Elsewhere an expired lease is what frees a job.
    """

    def __init__(
        self, workspace: Workspace, *, count: int, owner: str, owner_lock: OwnerLock | None
    ) -> None:
        self._workspace = workspace
        self._owner_lock = owner_lock
        self._queues = [(kind, workspace.job_queue(owner, kind.table)) for kind in KINDS]
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"worker-{i}", daemon=True)
            for i in range(count)
        ]
        self._owns_store = owner_lock is None
        self._ownership = threading.Lock()

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()
        if self._threads:
            threading.Thread(target=self._sweep, name="sweeper", daemon=True).start()

    def stop(self, timeout: float = 10.0) -> None:
        """Hand running jobs back to the queue and end the threads."""
        self._stopping.set()
        for _ in self._threads:
            self._workspace.doorbell.release()
        for thread in self._threads:
            thread.join(timeout)
        if self._owner_lock is not None:
            self._owner_lock.release()

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                worked = self._may_run() and any(
                    self._run_next(kind, queue) for kind, queue in self._queues
                )
            except Exception:
                # The database may be away for a while; a worker that died of it would never
                # notice its return.
                log.exception("worker_failed")
                worked = False
            if not worked:
                self._workspace.doorbell.acquire(timeout=POLL_SECONDS)

    def _sweep(self) -> None:
        try:
            removed = remove_orphans(self._workspace.database, self._workspace.artifacts)
        except Exception:
            # Nothing waits for it; the next start tries again.
            log.exception("sweep_failed")
        else:
            if removed:
                log.info("orphans_removed", count=len(removed))

    def _may_run(self) -> bool:
        with self._ownership:
            if not self._owns_store and self._owner_lock is not None:
                self._owns_store = self._owner_lock.try_acquire()
                if self._owns_store:
                    for _, queue in self._queues:
                        queue.take_over()
            return self._owns_store

    def _run_next(self, kind: JobKind, queue: JobQueue) -> bool:
        """Run the next job of a kind; False if there is none."""
        job = queue.claim()
        if job is None:
            return False
        logger = log.bind(kind=kind.name, id=str(job.id), attempt=job.attempt)
        logger.info("job_started")
        try:
            with renewed_lease(queue, job) as lost:
                kind.run(self._workspace, queue, job, check=lambda: self._check(lost))
            logger.info("job_succeeded")
        except JobCancelled:
            queue.cancel(job)
            logger.info("job_cancelled")
        except JobInterrupted:
            queue.release(job)
            logger.info("job_handed_back")
        except LeaseLost:
            logger.warning("lease_lost")
        except Exception as error:  # noqa: BLE001 - whoever waits is owed an end, whatever it was
            self._fail(queue, job, error)
        return True

    def _fail(self, queue: JobQueue, job: ClaimedJob, error: Exception) -> None:
        if self._stopping.is_set():
            # Its model was taken from it by the stop: not its fault, and not its end.
            queue.release(job)
            return
        if isinstance(error, ServiceError):
            log.info("job_failed", id=str(job.id), reason=error.message)
        else:
            log.error("job_failed_unexpectedly", id=str(job.id), exc_info=error)
        queue.fail(job, problem_of(error))

    def _check(self, lost: threading.Event) -> None:
        if self._stopping.is_set():
            raise JobInterrupted
        if lost.is_set():
            raise LeaseLost
