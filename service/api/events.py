"""``…/events``: the progress of a calibration, or of an evaluation, as it happens."""

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool

import models
from service.api import calibrations, evaluations
from service.api.dependencies import (
    CalibrationRef,
    EvaluationName,
    JobWatchDep,
    TenantDep,
    WorkspaceDep,
)
from service.api.event_stream import EventStream
from service.api.job_watch import Following
from service.api.problems import problems
from service.operations import further_sets
from service.operations import manage_calibrations as manage
from service.operations.followed_jobs import FollowedJob, evaluation_of_id
from service.storage.job_views import view_of

# Before that of evaluations, whose names may hold a slash.
router = APIRouter(tags=["calibrations"])

EXAMPLE = """\
event: progress
data: {"status":"running","progress":{"stage":"calibration","done":2560,"total":5000,\
"rows_per_second":1250.0,"eta_seconds":1.95}}
retry: 2000

: nothing new

event: end
data: {"id":"…","status":"succeeded", …}
retry: 2000

"""
# Of one event: OpenAPI 3.1 has no other way to describe a stream.
EVENT = {
    "type": "object",
    "properties": {
        "event": {"enum": ["progress", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
        "retry": {"type": "integer"},
    },
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    **problems(404),
    200: {
        "description": "Events `progress`, and at last one `end` with the whole resource.",
        "content": {"text/event-stream": {"schema": EVENT, "example": EXAMPLE}},
    },
}


@router.get(
    "/calibrations/{calibration_id}/events",
    summary="Follow a calibration",
    status_code=HTTPStatus.OK,
    response_class=EventStream,
    responses=RESPONSES,
)
async def follow_calibration(
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    calibration_id: CalibrationRef,
    watch: JobWatchDep,
) -> EventStream:
    """Send an event `progress` whenever status or progress change, and `end` when it has ended.

    `end` holds the resource, or `{"id": …, "status": "deleted"}`; then the stream closes. One that
    has ended already answers so at once. `Last-Event-ID` is not needed: each stream begins with
    how it is now.
    """
    row = await run_in_threadpool(manage.get_calibration, workspace, tenant_id, calibration_id)

    def read() -> calibrations.Calibration:
        whole = manage.get_calibration(workspace, tenant_id, str(row.id))
        return calibrations.resource(workspace, tenant_id, whole)

    job = FollowedJob(models.Calibration, row.id)
    return EventStream(Following(job, view_of(row)), watch, read)


@router.get(
    "/calibrations/{calibration_id}/evaluations/{evaluation_name:path}/events",
    summary="Follow an evaluation",
    tags=["evaluations"],
    status_code=HTTPStatus.OK,
    response_class=EventStream,
    responses=RESPONSES,
)
async def follow_evaluation(
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    calibration_id: CalibrationRef,
    evaluation_name: EvaluationName,
    watch: JobWatchDep,
) -> EventStream:
    """Send what `GET /calibrations/{calibration_id}/events` sends, of an evaluation."""
    row = await run_in_threadpool(
        further_sets.get_evaluation, workspace, tenant_id, calibration_id, evaluation_name
    )

    def read() -> evaluations.Evaluation:
        return evaluations.resource(evaluation_of_id(workspace, tenant_id, row.id))

    job = FollowedJob(models.Evaluation, row.id)
    return EventStream(Following(job, view_of(row)), watch, read)
