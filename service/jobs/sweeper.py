"""A thread that removes what dead uploads and jobs left in the artifact store."""

import threading
from datetime import timedelta

import structlog

from service.errors import Overloaded
from service.operations.workspace import Workspace
from service.storage.orphans import Swept, remove_orphans

ORPHAN_SECONDS = 3600.0
SHORTEST_PERIOD_SECONDS = 60.0

log = structlog.get_logger(__name__)


class Sweeper:
    """Sweeps when it starts and, from the end of each time on, as often as files become orphans.

    Every process that runs jobs has one: two that sweep at once do no harm, and it does not matter
    which of them lives.
    """

    def __init__(
        self,
        workspace: Workspace,
        stopping: threading.Event,
        *,
        orphan_seconds: float = ORPHAN_SECONDS,
        shortest_period: float = SHORTEST_PERIOD_SECONDS,
    ) -> None:
        self._workspace = workspace
        self._stopping = stopping
        self._older_than = timedelta(seconds=orphan_seconds)
        self._shortest_period = shortest_period
        self._period = max(orphan_seconds, shortest_period)
        self._thread = threading.Thread(target=self._work, name="sweeper", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self, timeout: float) -> None:
        """Wait for the thread, after the event has told it to stop."""
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _work(self) -> None:
        while not self._stopping.is_set():
            done = self._sweep()
            # What fails for the database or the store is soon tried again.
            self._stopping.wait(self._period if done else self._shortest_period)

    def _sweep(self) -> bool:
        metrics = self._workspace.metrics.sweeps
        try:
            swept = self._remove()
        except Overloaded as error:
            log.warning("sweep_put_off", reason=error.message)
        except Exception:
            # A sweeper that died of it would never notice that its cause is gone.
            if not self._stopping.is_set():
                log.exception("sweep_failed")
        else:
            metrics.swept(files=swept.files, removed=swept.removed)
            write = log.info if swept.removed else log.debug
            write("artifacts_swept", files=swept.files, removed=swept.removed)
            return True
        metrics.failed()
        return False

    def _remove(self) -> Swept:
        return remove_orphans(
            self._workspace.database,
            self._workspace.artifacts,
            older_than=self._older_than,
            go_on=lambda: not self._stopping.is_set(),
        )
