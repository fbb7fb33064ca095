"""What a tenant has at a glance."""

import uuid
from dataclasses import dataclass

from service.operations.workspace import Workspace
from service.storage.overview import JobRow, NameRow, job_rows, name_rows

MOST_NAMES = 500
MOST_JOBS = 100


@dataclass(frozen=True)
class Overview:
    """Names and jobs; ``is_cut`` tells whether there are more names than are shown."""

    names: list[NameRow]
    jobs: list[JobRow]
    is_cut: bool


def overview(workspace: Workspace, tenant_id: uuid.UUID) -> Overview:
    """Return one row a name, those changed last first, and the jobs under way."""
    with workspace.database.reading() as session:
        names = name_rows(session, tenant_id, limit=MOST_NAMES + 1)
        jobs = job_rows(session, tenant_id, limit=MOST_JOBS)
    return Overview(names[:MOST_NAMES], jobs, is_cut=len(names) > MOST_NAMES)


def jobs_under_way(workspace: Workspace, tenant_id: uuid.UUID) -> list[JobRow]:
    """Return the jobs that wait or run, the oldest first."""
    with workspace.database.reading() as session:
        return job_rows(session, tenant_id, limit=MOST_JOBS)
