"""The metrics as a scraper reads them."""

import structlog
from sqlalchemy.exc import SQLAlchemyError

from service.errors import Overloaded
from service.operations.workspace import Workspace
from service.storage.job_counts import job_counts

log = structlog.get_logger(__name__)


def exposition(workspace: Workspace) -> bytes:
    """Return all metrics as text; those that the database holds are left out while it is away."""
    workspace.metrics.jobs.show(_job_counts(workspace))
    return workspace.metrics.render()


def _job_counts(workspace: Workspace) -> dict[tuple[str, str], int] | None:
    try:
        with workspace.database.reading() as session:
            return job_counts(session)
    except (SQLAlchemyError, Overloaded) as error:
        log.warning("jobs_not_counted", error=type(error).__name__)
        return None
