"""The thread that deletes files which no row refers to."""

import threading
from datetime import timedelta

import structlog

from service.errors import Overloaded
from service.storage.orphans import remove_orphans
from service.workspace import Workspace

log = structlog.get_logger(__name__)

ORPHAN_SECONDS = 3600.0
SHORTEST_PERIOD_SECONDS = 60.0


def sweep_until(
    stopping: threading.Event,
    workspace: Workspace,
    *,
    orphan_seconds: float = ORPHAN_SECONDS,
    shortest_period: float = SHORTEST_PERIOD_SECONDS,
) -> None:
    """Remove files at once, then again after each period.

    Every process that runs jobs does so: simultaneous sweeps do no harm.
    """
    period = max(orphan_seconds, shortest_period)
    while not stopping.is_set():
        swept = _sweep(stopping, workspace, timedelta(seconds=orphan_seconds))
        # After a failure of the database or the store, try again soon.
        stopping.wait(period if swept else shortest_period)


def _sweep(stopping: threading.Event, workspace: Workspace, older_than: timedelta) -> bool:
    metrics = workspace.metrics.sweeps
    try:
        swept = remove_orphans(
            workspace.database,
            workspace.artifacts,
            older_than=older_than,
            go_on=lambda: not stopping.is_set(),
        )
    except Overloaded as error:
        log.warning("sweep_postponed", reason=error.message)
    except Exception:
        # Keep the thread alive; the next sweep may succeed.
        if not stopping.is_set():
            log.exception("sweep_failed")
    else:
        metrics.swept(files=swept.files, removed=swept.removed)
        write = log.info if swept.removed else log.debug
        write("artifacts_swept", files=swept.files, removed=swept.removed)
        return True
    metrics.failed()
    return False
