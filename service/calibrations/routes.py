"""``/calibrations``: reading, following, cancelling and deleting."""

import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

import models
from howsure.report.findings import documented_rows
from service.calibrations import manage
from service.calibrations.schemas import Calibration, CalibrationPage
from service.http.dependencies import (
    CalibrationRef,
    CallDep,
    PageCursor,
    PageLimit,
    ServicesDep,
)
from service.http.idempotency import (
    Started,
    idempotency_key,
    keyed_request,
    run_idempotent,
    tell_replayed,
)
from service.http.job_events import (
    EventStream,
    answer_job,
    job_resource,
)
from service.http.job_watch import JobSubscription, JobWatch
from service.http.problems import problems
from service.http.services import Services
from service.http.worker_threads import Lane
from service.jobs.acceptance import CallContext
from service.storage.calibrations import CalibrationRepository
from service.storage.overview import FollowedJob, view_of

router = APIRouter(tags=["calibrations"])


def resource(ctx: CallContext, row: models.Calibration) -> Calibration:
    """Return the resource of a row; read from the database whether it is promoted."""
    return _render(row, _promoted(ctx, {row.name}))


def _promoted(ctx: CallContext, names: Collection[str]) -> dict[str, int]:
    with ctx.workspace.database.reading(ctx.tenant_id) as session:
        return CalibrationRepository(session, ctx.tenant_id).promoted_versions(names)


def _render(row: models.Calibration, promoted: Mapping[str, int]) -> Calibration:
    # Calibrations stored before anything was timed lack the costs.
    onnx_model = None if row.onnx_model is None else {"costs": {}, **row.onnx_model}
    costs = None if onnx_model is None else onnx_model.pop("costs")
    return job_resource(
        Calibration,
        row,
        promoted=promoted.get(row.name) == row.version,
        model=onnx_model,
        costs=costs,
        findings=documented_rows(row.findings),
    )


async def start_once(
    request: Request,
    ctx: CallContext,
    content: object,
    start: Callable[[CallContext], uuid.UUID],
    *,
    lane: Lane | None = None,
) -> Started:
    """Start a calibration, once per idempotency key, in a lane or an ordinary thread.

    ``content`` tells requests with the same key apart: digests in the place of files.
    """
    keyed = keyed_request(idempotency_key(request), request, content)
    call = partial(start, replace(ctx, request=keyed))
    run = partial(run_idempotent, ctx.workspace, ctx.tenant_id, keyed, call)
    return await (run_in_threadpool(run) if lane is None else lane.run(ctx.tenant_id, run))


async def calibration_response(
    request: Request, response: Response, ctx: CallContext, services: Services, started: Started
) -> Calibration:
    """Return the resource of a started calibration, after the wait that the caller prefers."""
    tell_replayed(response, started)
    started_id = str(started.calibration_id)
    read = partial(manage.get_calibration, ctx.workspace, ctx.tenant_id, started_id)
    location = f"/calibrations/{started_id}"
    row = await answer_job(request, response, services.job_watch, location, read)
    return await run_in_threadpool(resource, ctx, row)


@router.get("/calibrations", summary="List calibrations", responses=problems(422))
def list_calibrations(
    ctx: CallDep,
    limit: PageLimit = 50,
    cursor: PageCursor = None,
    name: Annotated[str | None, Query(description="Only versions of this name.")] = None,
    status: Annotated[
        models.JobStatus | None, Query(description="Only those with this status.")
    ] = None,
) -> CalibrationPage:
    """List calibrations, newest first, filtered by name and status."""
    rows, next_cursor = manage.list_calibrations(
        ctx.workspace, ctx.tenant_id, limit=limit, cursor=cursor, name=name, status=status
    )
    promoted = _promoted(ctx, {row.name for row in rows})
    calibrations = [_render(row, promoted) for row in rows]
    return CalibrationPage(calibrations=calibrations, next_cursor=next_cursor)


@router.get(
    "/calibrations/{calibration_id}", summary="Read one calibration", responses=problems(404)
)
def get_calibration(ctx: CallDep, calibration_id: CalibrationRef) -> Calibration:
    """Read a calibration by id, by name or by `name@version`."""
    row = manage.get_calibration(ctx.workspace, ctx.tenant_id, calibration_id)
    return resource(ctx, row)


@router.post(
    "/calibrations/{calibration_id}/cancel",
    summary="Cancel a queued or running calibration",
    status_code=HTTPStatus.ACCEPTED,
    responses=problems(404, 409),
)
def cancel_calibration(ctx: CallDep, calibration_id: CalibrationRef) -> Calibration:
    """Ask a calibration to stop; it does so within a batch."""
    return resource(ctx, manage.cancel_calibration(ctx, calibration_id))


@router.post(
    "/calibrations/{calibration_id}/promote",
    summary="Let the name mean this version",
    responses=problems(404, 409),
)
def post_promote(ctx: CallDep, calibration_id: CalibrationRef) -> Calibration:
    """From now on the name means this version, until another is promoted."""
    return resource(ctx, manage.promote_calibration(ctx, calibration_id))


@router.delete(
    "/calibrations/{calibration_id}",
    summary="Delete a calibration and all it keeps",
    status_code=HTTPStatus.NO_CONTENT,
    responses=problems(404, 409),
)
def delete_calibration(ctx: CallDep, calibration_id: CalibrationRef) -> None:
    """Delete a finished calibration: its row, its tables and its files."""
    manage.delete_calibration(ctx, calibration_id)


# The schema of one event: OpenAPI 3.1 cannot describe a stream otherwise.
EVENT = {
    "type": "object",
    "properties": {
        "event": {"enum": ["progress", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
        "retry": {"type": "integer"},
    },
}
# Also used for the events of evaluations.
EVENT_ROUTE: dict[str, Any] = {
    "status_code": HTTPStatus.OK,
    "response_class": EventStream,
    "responses": {
        **problems(404),
        200: {
            "description": "Events `progress`, and at last one `end` with the whole resource.",
            "content": {"text/event-stream": {"schema": EVENT}},
        },
    },
}


def event_stream(
    ctx: CallContext,
    watch: JobWatch,
    row: models.Calibration | models.Evaluation,
    read: Callable[[], BaseModel],
) -> EventStream:
    """Return the events of a job; ``read`` returns its resource once it has ended."""
    subscription = JobSubscription(FollowedJob(type(row), row.id), view_of(row))
    return EventStream(subscription, watch, ctx.tenant_id, read)


@router.get("/calibrations/{calibration_id}/events", summary="Follow a calibration", **EVENT_ROUTE)
async def follow_calibration(
    ctx: CallDep, calibration_id: CalibrationRef, services: ServicesDep
) -> EventStream:
    """Send an event `progress` whenever status or progress change, and `end` when it has ended.

    `end` holds the resource, or `{"id": …, "status": "deleted"}`; then the stream closes. One that
    has ended already answers so at once. `Last-Event-ID` is not needed: each stream begins with
    how it is now.
    """
    find = partial(manage.get_calibration, ctx.workspace, ctx.tenant_id)
    row = await run_in_threadpool(find, calibration_id)

    def read() -> Calibration:
        return resource(ctx, find(str(row.id)))

    return event_stream(ctx, services.job_watch, row, read)
