"""How many rows of a set are recorded, counted by several threads and told by one."""

import threading

from service.operations.job_progress import JobProgress


class RowCount:
    """Counts rows of one stage; what is added twice, by a shard that was begun anew, is capped."""

    def __init__(self, progress: JobProgress, stage: str, *, done: int, total: int) -> None:
        self._progress = progress
        self._stage = stage
        self._done = done
        self._total = total
        self._lock = threading.Lock()
        progress.say(stage, done, total, now=True)

    def add(self, rows: int) -> None:
        """Count rows, from any thread."""
        with self._lock:
            self._done = min(self._done + rows, self._total)

    def say(self) -> None:
        """Report the count, and stop the run when told to."""
        self._progress.say(self._stage, self._done, self._total)
