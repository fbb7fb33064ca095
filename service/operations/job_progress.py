"""How a running job tells how far it is, and is told to stop."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from service.operations.recent_rate import RecentRate
from service.storage.job_queue import ClaimedJob, JobQueue, JobSignal, LeaseLost

PROGRESS_SECONDS = 0.5


class JobCancelled(Exception):
    """Somebody asked the job to stop."""


class JobInterrupted(Exception):
    """The process is to stop; the job goes back to the queue."""


@dataclass
class JobProgress:
    """Tells the database how far the job is, not more often than a person would look.

    ``check`` is called each time and raises to stop the job.
    """

    queue: JobQueue
    job: ClaimedJob
    check: Callable[[], None]
    said: float = field(default=float("-inf"))
    last: tuple[str, int, int] = field(default=("start", 0, 0))
    rate: RecentRate = field(default_factory=RecentRate)

    def say(self, stage: str, done: int, total: int, *, now: bool = False) -> None:
        """Report the stage, and stop the run when told to."""
        self.check()
        self.last = (stage, done, total)
        moment = time.monotonic()
        rate = self.rate.seen(stage, done, moment)
        if not now and moment - self.said < PROGRESS_SECONDS:
            return
        signal = self.queue.report_progress(self.job, stage, done, total, rate)
        self.said = time.monotonic()
        if signal is JobSignal.CANCEL:
            raise JobCancelled
        if signal is JobSignal.LOST:
            raise LeaseLost

    def say_again(self) -> None:
        """Report what was reported last, while the run waits for something."""
        self.say(*self.last)
