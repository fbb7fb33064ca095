"""How a job ends that did not succeed."""

import threading
import time
from collections.abc import Callable

import structlog

from service.errors import Overloaded, ServiceError, StorageFull
from service.operations.job_leftovers import remove_leftovers_of
from service.operations.job_progress import JobCancelled, JobInterrupted
from service.operations.problem import problem_of
from service.operations.workspace import Workspace
from service.storage.job_queue import ClaimedJob, JobQueue, LeaseLost

AGAIN_SECONDS = 1.0
PAUSE_SECONDS = 5.0

log = structlog.get_logger(__name__)


class JobEnding:
    """Writes the end of one job: cancelled, failed or handed back."""

    def __init__(
        self, workspace: Workspace, queue: JobQueue, job: ClaimedJob, stopping: threading.Event
    ) -> None:
        self._workspace = workspace
        self._queue = queue
        self._job = job
        self._stopping = stopping
        self._log = log.bind(id=str(job.id), attempt=job.attempt)

    def after(self, error: Exception) -> None:
        """End the job as befits what its run raised."""
        if isinstance(error, LeaseLost):
            self._log.warning("lease_lost")
        elif isinstance(error, JobCancelled):
            self._end("job_cancelled", lambda: self._queue.cancel(self._job))
        elif isinstance(error, JobInterrupted) or self._stopping.is_set():
            # What a stop takes from a job, its model first, is not the job's fault.
            self.hand_back()
        elif isinstance(error, Overloaded) and not isinstance(error, StorageFull):
            self._log.warning("job_finds_no_room", reason=error.message)
            self.hand_back()
            self._stopping.wait(PAUSE_SECONDS)
        else:
            self._fail(error)

    def hand_back(self) -> None:
        """Queue the job again; the attempt does not count."""
        self._write("job_handed_back", lambda: self._queue.release(self._job))

    def _fail(self, error: Exception) -> None:
        if isinstance(error, ServiceError):
            self._log.info("job_fails", reason=error.message)
        else:
            self._log.error("job_fails_unexpectedly", exc_info=error)
        self._end("job_failed", lambda: self._queue.fail(self._job, problem_of(error)))

    def _end(self, event: str, write: Callable[[], bool]) -> None:
        if self._write(event, write):
            remove_leftovers_of(self._workspace, self._job)

    def _write(self, event: str, write: Callable[[], bool]) -> bool:
        """Write the end, again for as long as the lease may last if the database is away.

        Return whether the job was still this owner's to end.
        Should it stay away, the expired lease is what frees the job.
        """
        until = time.monotonic() + self._queue.lease_seconds
        while True:
            try:
                held = write()
            except Exception as error:  # noqa: BLE001 - the worker outlives whatever it was
                unexpected = None if isinstance(error, ServiceError) else error
                self._log.warning(
                    "end_not_written", end=event, reason=str(error), exc_info=unexpected
                )
            else:
                self._log.info(event if held else "lease_lost")
                return held
            if time.monotonic() >= until or self._stopping.wait(AGAIN_SECONDS):
                return False
