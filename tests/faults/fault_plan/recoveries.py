"""How long a job waits whose worker has died: until another one takes it, or it has ended."""

import threading
import time
from collections.abc import Sequence
from typing import Self

from fault_plan.stored_jobs import StoredJob, running_jobs

POLL_SECONDS = 0.1


class Recoveries:
    """Watches the jobs of the dead while others go on."""

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url
        self._lock = threading.Lock()
        self._waiting: list[tuple[StoredJob, float]] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.seconds: list[float] = []

    def expect(self, jobs: Sequence[StoredJob]) -> None:
        """Note jobs whose owner has just died."""
        with self._lock:
            self._waiting += [(job, time.monotonic()) for job in jobs]

    def never(self) -> list[str]:
        """Return the jobs that nobody has taken."""
        return [f"nobody took {job.name} from its dead worker" for job, _ in self._waiting]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        until = time.monotonic() + 30
        while self._waiting and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        self._stopping.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopping.wait(POLL_SECONDS):
            if self._waiting:
                self._look()

    def _look(self) -> None:
        owners = running_jobs(self._database_url)
        with self._lock:
            taken = [waits for waits in self._waiting if owners.get(waits[0].id) != waits[0].owner]
            self._waiting = [waits for waits in self._waiting if waits not in taken]
        self.seconds += [time.monotonic() - since for _, since in taken]
