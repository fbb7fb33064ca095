"""Where the jobs stand that somebody follows."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

import models
from service.operations.workspace import Workspace
from service.storage.evaluations import EvaluationRepository
from service.storage.job_queue import JobTable
from service.storage.job_views import JobView, job_views


@dataclass(frozen=True)
class FollowedJob:
    """Which job somebody follows."""

    table: type[JobTable]
    id: UUID


def look_at(workspace: Workspace, jobs: Collection[FollowedJob]) -> Mapping[FollowedJob, JobView]:
    """Return where these jobs stand; those that are deleted lack."""
    found: dict[FollowedJob, JobView] = {}
    with workspace.database.reading() as session:
        for table in {job.table for job in jobs}:
            ids = [job.id for job in jobs if job.table is table]
            views = job_views(session, table, ids)
            found |= {FollowedJob(table, job_id): view for job_id, view in views.items()}
    return found


def evaluation_of_id(
    workspace: Workspace, tenant_id: UUID, evaluation_id: UUID
) -> models.Evaluation:
    """Return an evaluation by its id: its name may be another's by now."""
    with workspace.database.reading() as session:
        return EvaluationRepository(session, tenant_id).by_id(evaluation_id)
