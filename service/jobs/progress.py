"""Progress of a running job: rows counted by several threads, written by one."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
from sqlalchemy.exc import SQLAlchemyError

from service.errors import DeadlineExceeded, Overloaded
from service.jobs.queue import ClaimedJob, JobQueue, JobSignal, LeaseLost

WINDOW_SECONDS = 30.0
STEP_SECONDS = 0.25
# Over a shorter time a single batch would decide the rate.
LEAST_SECONDS = 0.5
PROGRESS_SECONDS = 0.5
# After it a job gives way to waiting jobs of other tenants.
TURN_SECONDS = 60.0

log = structlog.get_logger(__name__)


class RecentRate:
    """The rate of one attempt in its current stage over the last half minute.

    Rows that an earlier attempt finished do not count.
    """

    def __init__(self) -> None:
        self._stage: str | None = None
        self._seen: deque[tuple[float, int]] = deque()

    def seen(self, stage: str, done: int, moment: float) -> float | None:
        """Record the progress at a monotonic time and return the rate per second.

        Return None in the first half second of a stage.
        """
        if stage != self._stage or done < self._seen[-1][1]:
            self._stage = stage
            self._seen.clear()
        if not self._seen or moment - self._seen[-1][0] >= STEP_SECONDS:
            self._seen.append((moment, done))
        while len(self._seen) > 1 and self._seen[1][0] <= moment - WINDOW_SECONDS:
            self._seen.popleft()
        began, before = self._seen[0]
        passed = moment - began
        return None if passed < LEAST_SECONDS else (done - before) / passed


class JobCancelled(Exception):
    """The job was asked to stop."""


class JobInterrupted(Exception):
    """The process is about to stop; the job returns to the queue."""


@dataclass
class Progress:
    """Writes the progress of a job to the database, at most twice a second.

    ``check`` is called at each report and raises to stop the job. Any thread may call `add`; the
    job's own thread reports.
    """

    queue: JobQueue
    job: ClaimedJob
    check: Callable[[], None]
    rate: RecentRate = field(default_factory=RecentRate)
    _begun: float = field(default_factory=time.monotonic, init=False)
    _deadline: float = field(default=float("inf"), init=False)
    _seconds: float = field(default=float("inf"), init=False)
    _reported: float = field(default=float("-inf"), init=False)
    _stage: str = field(default="start", init=False)
    _done: int = field(default=0, init=False)
    _total: int = field(default=0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def report(self, stage: str, done: int, total: int, *, now: bool = False) -> None:
        """Report the stage and how far it is.

        Raises
        ------
        JobCancelled, LeaseLost
            If the job has to stop.
        """
        with self._lock:
            self._stage, self._done, self._total = stage, done, total
        self.report_again(now=now)

    def limit(self, seconds: float) -> None:
        """Let the stages up to the next limit take at most so long."""
        self._seconds, self._deadline = seconds, time.monotonic() + seconds

    def end_turn(self) -> None:
        """Let jobs of other tenants go first if this one had its turn; what it stored stays.

        Raises
        ------
        JobInterrupted
            If the turn is over.
        """
        is_over = time.monotonic() - self._begun > TURN_SECONDS
        if is_over and self.queue.others_wait(self.job):
            raise JobInterrupted

    def add(self, rows: int) -> None:
        """Count rows of the stage, from any thread; a shard that ran twice counts no more."""
        with self._lock:
            self._done = min(self._done + rows, self._total)

    def report_again(self, *, now: bool = False) -> None:
        """Report the rows counted so far.

        Raises
        ------
        JobCancelled, LeaseLost
            If the job has to stop.
        """
        self.check()
        moment = time.monotonic()
        if moment > self._deadline:
            raise DeadlineExceeded(
                f"The rows took longer than {self._seconds:.0f} s, and the job was stopped. A job "
                "may take ten times what the first rows let expect, up to HOWSURE_JOB_SECONDS."
            )
        stage, done, total = self._stage, self._done, self._total
        rate = self.rate.seen(stage, done, moment)
        if not now and moment - self._reported < PROGRESS_SECONDS:
            return
        self._reported = time.monotonic()
        try:
            signal = self.queue.report_progress(self.job, stage, done, total, rate)
        except (SQLAlchemyError, Overloaded) as error:
            # The lease decides whether the job goes on, not its progress bar.
            log.warning("progress_not_written", job=str(self.job.id), error=type(error).__name__)
            return
        if signal is JobSignal.CANCEL:
            raise JobCancelled
        if signal is JobSignal.LOST:
            raise LeaseLost
