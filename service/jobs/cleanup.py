"""Removal of files that no row refers to: a job's temporary artifacts, and orphans of any age."""

import threading
from datetime import timedelta
from uuid import UUID

import structlog

from service.errors import Overloaded
from service.jobs.queue import ClaimedJob
from service.storage.artifact_keys import JobFiles
from service.storage.artifact_rows import referenced_keys
from service.storage.orphans import remove_orphans
from service.workspace import Workspace

log = structlog.get_logger(__name__)

ORPHAN_SECONDS = 3600.0
SHORTEST_PERIOD_SECONDS = 60.0


def delete_temporary_artifacts(workspace: Workspace, job: ClaimedJob) -> None:
    """Delete the files below the prefix of a finished job that have no row: mostly its shards."""
    delete_unnamed_files(
        workspace, job.tenant_id, JobFiles.of(job.calibration_id, job.evaluation_id)
    )


def delete_unnamed_files(workspace: Workspace, tenant_id: UUID, files: JobFiles) -> None:
    """Delete the files below the prefix of a finished job that have no row.

    Errors are logged only: the sweeper deletes the files later.
    """
    try:
        keys = workspace.artifacts.keys(files.prefix)
        with workspace.database.reading(tenant_id) as session:
            named = referenced_keys(session, tenant_id, keys)
        workspace.artifacts.delete([key for key in keys if key not in named])
    except Exception as error:  # noqa: BLE001 - the job has ended well, whatever this raises
        log.warning("temporary_artifacts_remain", prefix=files.prefix, error=repr(error))


def sweep_until(
    stopping: threading.Event,
    workspace: Workspace,
    *,
    orphan_seconds: float = ORPHAN_SECONDS,
    shortest_period: float = SHORTEST_PERIOD_SECONDS,
) -> None:
    """Remove orphans at once, then again after each period in which files become orphans.

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
