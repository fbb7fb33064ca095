"""Threads that claim jobs and run them."""

import threading
import time
from collections import deque

import structlog

from service.errors import Overloaded
from service.jobs.endings import JobEnding
from service.jobs.kinds import KINDS, JobKind
from service.jobs.lease import renewed_lease
from service.jobs.sweeper import ORPHAN_SECONDS, Sweeper
from service.operations.job_leftovers import remove_leftovers_of
from service.operations.job_progress import JobInterrupted
from service.operations.workspace import Workspace
from service.storage.job_queue import ClaimedJob, JobQueue, LeaseLost
from service.storage.owner_lock import OwnerLock

POLL_SECONDS = 1.0
ONE_OWNER = (
    "another process runs the jobs of this SQLite database, and only one may; "
    "this one goes on when that ends"
)

log = structlog.get_logger(__name__)


class Workers:
    """A few threads, each running one job at a time.

    On SQLite only the process that holds the owner lock runs jobs; it takes over at once what a
    dead predecessor left running. Elsewhere an expired lease is what frees a job.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        count: int,
        owner: str,
        owner_lock: OwnerLock | None,
        orphan_seconds: float = ORPHAN_SECONDS,
    ) -> None:
        self._workspace = workspace
        self._owner_lock = owner_lock
        self._queues = [(kind, workspace.job_queue(owner, kind.table)) for kind in KINDS]
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"worker-{i}", daemon=True)
            for i in range(count)
        ]
        self._sweeper = Sweeper(workspace, self._stopping, orphan_seconds=orphan_seconds)
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
        """Ask the threads to hand their jobs back, and give them a moment to do so.

        A job that waits for a model's answer hears of it when its process is taken away: then
        call `finish`.
        """
        self._stopping.set()
        for _ in self._threads:
            self._workspace.doorbell.release()
        self._join(timeout)

    def finish(self, timeout: float = 3.0) -> None:
        """Wait for the threads, then hand back what is still running and let others own it.

        A thread that computes on is cut off: it can publish nothing any more.
        """
        self._join(timeout)
        for job, queue in list(self._running.items()):
            JobEnding(self._workspace, queue, job, self._stopping).hand_back()
        if self._owner_lock is not None:
            self._owner_lock.release()

    def _join(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))
        self._sweeper.join(max(until - time.monotonic(), 0.0))

    def _work(self) -> None:
        # The kinds take turns: none waits for the others' queues to become empty.
        queues = deque(self._queues)
        while not self._stopping.is_set():
            worked = False
            try:
                worked = self._may_run() and self._run_one(queues)
            except Overloaded as error:
                log.warning("database_away", reason=error.message)
            except Exception:
                # A worker that died of it would never notice that its cause is gone.
                log.exception("worker_failed")
            if not worked:
                self._workspace.doorbell.acquire(timeout=POLL_SECONDS)

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
            log.info("runs_jobs_from_now_on")
        return True

    def _run_one(self, queues: deque[tuple[JobKind, JobQueue]]) -> bool:
        """Run a job of the first kind that has one, and put that kind last; False if none has."""
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
        except Exception as error:  # noqa: BLE001 - whoever waits is owed an end, whatever it was
            JobEnding(self._workspace, queue, job, self._stopping).after(error)
        else:
            log.info("job_succeeded", kind=kind.name, id=str(job.id))
            remove_leftovers_of(self._workspace, job)
        finally:
            self._running.pop(job, None)
        return True

    def _check(self, lost: threading.Event) -> None:
        if self._stopping.is_set():
            raise JobInterrupted
        if lost.is_set():
            raise LeaseLost
