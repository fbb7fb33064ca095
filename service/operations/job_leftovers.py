"""Files of a job that has ended and that nothing refers to: the shards of its sets, mostly."""

from uuid import UUID

import structlog

from service.operations.workspace import Workspace
from service.storage.artifact_rows import named_keys
from service.storage.job_files import JobFiles
from service.storage.job_queue import ClaimedJob

log = structlog.get_logger(__name__)


def remove_leftovers_of(workspace: Workspace, job: ClaimedJob) -> None:
    """As `remove_leftovers`, of a job that was run here."""
    remove_leftovers(workspace, job.tenant_id, job.calibration_id, job.evaluation_id)


def remove_leftovers(
    workspace: Workspace,
    tenant_id: UUID,
    calibration_id: UUID,
    evaluation_id: UUID | None = None,
) -> None:
    """Delete what lies below the job's prefix and has no row; only for a job that has ended.

    Nobody waits for it: should it fail, the sweeper finds them later.
    """
    try:
        keys = workspace.artifacts.keys(JobFiles.of(calibration_id, evaluation_id).prefix)
        with workspace.database.reading() as session:
            named = named_keys(session, tenant_id, keys)
        workspace.artifacts.delete([key for key in keys if key not in named])
    except Exception as error:  # noqa: BLE001 - whatever it was, the job has ended well
        log.warning("leftovers_stay", id=str(evaluation_id or calibration_id), error=repr(error))
