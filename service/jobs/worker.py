"""Threads that claim calibrations and run them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from service.errors import ServiceError
from service.operations.problem import problem_of
from service.operations.run_calibration import (
    CalibrationCancelled,
    CalibrationInterrupted,
    run_calibration,
)
from service.operations.workspace import Workspace
from service.storage.job_queue import ClaimedJob, JobSignal, LeaseLost
from service.storage.orphans import remove_orphans
from service.storage.owner_lock import OwnerLock

POLL_SECONDS = 1.0
RENEWALS_PER_LEASE = 3

log = structlog.get_logger(__name__)


class Workers:
    """A few threads, each running one calibration at a time.

    On SQLite only the process that holds the owner lock runs calibrations; it takes over at once
    what a dead predecessor left running. Elsewhere an expired lease is what frees a job.
    """

    def __init__(
        self, workspace: Workspace, *, count: int, owner: str, owner_lock: OwnerLock | None
    ) -> None:
        self._workspace = workspace
        self._owner_lock = owner_lock
        self._queue = workspace.job_queue(owner)
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
        """Hand running calibrations back to the queue and end the threads."""
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
                job = self._queue.claim() if self._may_run() else None
            except Exception:
                # The database may be away for a while; a worker that died of it would never
                # notice its return.
                log.exception("claim_failed")
                job = None
            if job is None:
                self._workspace.doorbell.acquire(timeout=POLL_SECONDS)
            else:
                self._run(job)

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
                    self._queue.take_over()
            return self._owns_store

    def _run(self, job: ClaimedJob) -> None:
        logger = log.bind(calibration=str(job.calibration_id), attempt=job.attempt)
        logger.info("calibration_started")
        try:
            with self._renewing(job) as lost:
                run_calibration(self._workspace, self._queue, job, check=lambda: self._check(lost))
            logger.info("calibration_succeeded")
        except CalibrationCancelled:
            self._queue.cancel(job)
            logger.info("calibration_cancelled")
        except CalibrationInterrupted:
            self._queue.release(job)
            logger.info("calibration_handed_back")
        except LeaseLost:
            logger.warning("lease_lost")
        except ServiceError as error:
            logger.info("calibration_failed", reason=error.message)
            self._queue.fail(job, problem_of(error))
        except Exception as error:
            # Whatever it was, the caller waits for an answer and the queue for a free thread.
            logger.exception("calibration_failed_unexpectedly")
            self._queue.fail(job, problem_of(error))

    def _check(self, lost: threading.Event) -> None:
        if self._stopping.is_set():
            raise CalibrationInterrupted
        if lost.is_set():
            raise LeaseLost

    @contextmanager
    def _renewing(self, job: ClaimedJob) -> Iterator[threading.Event]:
        """Renew the lease from a thread of its own while the block runs."""
        done, lost = threading.Event(), threading.Event()

        def renew() -> None:
            while not done.wait(self._queue.lease_seconds / RENEWALS_PER_LEASE):
                try:
                    if self._queue.renew(job) is JobSignal.LOST:
                        lost.set()
                        return
                except Exception:
                    # Tried again at the next beat; the lease outlives two failures.
                    log.exception("renewal_failed")

        thread = threading.Thread(target=renew, name=f"lease-{job.calibration_id}", daemon=True)
        thread.start()
        try:
            yield lost
        finally:
            done.set()
            thread.join()
