"""``/calibrations``: the resource that POST /calibrate makes."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

import models
from howsure.statistics.findings import Level
from service.calibrations import manage
from service.calibrations.findings import with_docs
from service.evaluations import evaluations, routes
from service.http.dependencies import (
    ActDep,
    CalibrationRef,
    EvaluationName,
    ServicesDep,
    TenantDep,
    WorkspaceDep,
)
from service.http.job_events import (
    EventStream,
    FollowedJob,
    JobSubscription,
    Progress,
    evaluation_of_id,
    progress_of,
)
from service.http.problems import problems
from service.storage.overview import view_of
from service.workspace import Workspace

router = APIRouter(tags=["calibrations"])

Status = models.JobStatus


class MeasureCost(BaseModel):
    """Runs of the whole model for one row, and their time on the first rows."""

    passes: int = Field(description="Runs of the whole model.")
    ms_per_row: float = Field(description="Milliseconds.")


class Finding(BaseModel):
    """What looks wrong with a set or its model, and the figures behind it."""

    code: str = Field(examples=["labels-shifted"], description="Stable; for programs.")
    level: Level = Field(description="A warning: of no use as it is. A notice: worth a look.")
    message: str = Field(description="What was seen, in words, and what to do.")
    figures: dict[str, int | float] = Field(description="The numbers of the message.")
    docs: str = Field(
        examples=["docs/findings.md#labels-shifted"], description="Where it is explained."
    )


class Calibration(BaseModel):
    """One calibration: the job, and what it made."""

    model_config = ConfigDict(from_attributes=True)

    id: uuid.UUID = Field(description="Of this version, for good.")
    name: str = Field(examples=["digits"], description="Shared by the versions.")
    version: int = Field(examples=[1], description="Counted per name, never reused.")
    status: Status = Field(description="Where the job stands.")
    promoted: bool = Field(description="Whether the name was told to mean this version.")
    refit_of: uuid.UUID | None = Field(description="Whose records it was fitted to.")
    progress: Progress | None = Field(description="While it runs; null else.")
    created_at: datetime = Field(description="When it was accepted, in UTC.")
    finished_at: datetime | None = Field(description="When it ended, in UTC.")
    config: dict[str, Any] = Field(description="The configuration as resolved.")
    model: dict[str, Any] | None = Field(
        description="The ONNX model as found; null when its outputs were uploaded."
    )
    costs: dict[str, MeasureCost] | None = Field(
        description="What one row costs: `plain`, one run of the model, and what each measure "
        "that runs it again adds; null without a model."
    )
    data: dict[str, Any] = Field(description="Digest, samples and class counts.")
    versions: dict[str, str] = Field(description="Versions of the runtime and the libraries.")
    accuracy: dict[str, float] | None = Field(
        examples=[{"1": 0.95, "5": 0.998}],
        description="Share of the calibration set for which each event holds.",
    )
    serve: dict[str, str] | None = Field(
        examples=[{"1": "neg_log_pmax", "5": "entropy"}],
        description="The uncertainty measure that serves each event.",
    )
    warnings: list[str] = Field(description="Sentences worth reading.")
    findings: list[Finding] = Field(description="What looks wrong with it.")
    error: dict[str, Any] | None = Field(description="Why it failed, as a problem.")


class CalibrationPage(BaseModel):
    """A page of calibrations, newest first."""

    calibrations: list[Calibration] = Field(description="Of this page, newest first.")
    next_cursor: str | None = Field(description="Give it as `cursor` to read on; null at the end.")


def rendered_findings(found: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Render a row's findings."""
    return [Finding.model_validate(with_docs(finding)) for finding in found]


def resource(workspace: Workspace, tenant_id: uuid.UUID, row: models.Calibration) -> Calibration:
    """Render a row; asks the database which version its name was promoted to."""
    return _render(row, manage.promoted_versions(workspace, tenant_id, [row.name]))


def _render(row: models.Calibration, promoted: Mapping[str, int]) -> Calibration:
    # Calibrations stored before anything was timed lack the costs.
    onnx_model = None if row.onnx_model is None else {"costs": {}, **row.onnx_model}
    costs = None if onnx_model is None else onnx_model.pop("costs")
    return Calibration(
        id=row.id,
        name=row.name,
        version=row.version,
        status=row.status,
        promoted=promoted.get(row.name) == row.version,
        progress=progress_of(row),
        refit_of=row.refit_of,
        created_at=row.created_at,
        finished_at=row.finished_at,
        config=row.config,
        model=onnx_model,
        costs=costs,
        data=row.data,
        versions=row.versions,
        accuracy=row.accuracy,
        serve=row.serve,
        warnings=row.warnings,
        findings=rendered_findings(row.findings),
        error=row.error,
    )


@router.get("/calibrations", summary="List calibrations", responses=problems(422))
def list_calibrations(
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    limit: Annotated[int, Query(ge=1, le=200, description="Most of a page.")] = 50,
    cursor: Annotated[str | None, Query(description="`next_cursor` of the page before.")] = None,
    name: Annotated[str | None, Query(description="Only versions of this name.")] = None,
    status: Annotated[Status | None, Query(description="Only those in this state.")] = None,
) -> CalibrationPage:
    """List calibrations, newest first, filtered by name and status."""
    rows, next_cursor = manage.list_calibrations(
        workspace, tenant_id, limit=limit, cursor=cursor, name=name, status=status
    )
    promoted = manage.promoted_versions(workspace, tenant_id, {row.name for row in rows})
    return CalibrationPage(
        calibrations=[_render(row, promoted) for row in rows], next_cursor=next_cursor
    )


@router.get(
    "/calibrations/{calibration_id}", summary="Read one calibration", responses=problems(404)
)
def get_calibration(
    workspace: WorkspaceDep, tenant_id: TenantDep, calibration_id: CalibrationRef
) -> Calibration:
    """Read a calibration by id, by name or by `name@version`."""
    row = manage.get_calibration(workspace, tenant_id, calibration_id)
    return resource(workspace, tenant_id, row)


@router.post(
    "/calibrations/{calibration_id}/cancel",
    summary="Cancel a queued or running calibration",
    status_code=HTTPStatus.ACCEPTED,
    responses=problems(404, 409),
)
def cancel_calibration(
    workspace: WorkspaceDep, act: ActDep, calibration_id: CalibrationRef
) -> Calibration:
    """Ask a calibration to stop; it does so within a batch."""
    row = manage.cancel_calibration(workspace, act.tenant_id, calibration_id, act=act)
    return resource(workspace, act.tenant_id, row)


@router.delete(
    "/calibrations/{calibration_id}",
    summary="Delete a calibration and all it keeps",
    status_code=HTTPStatus.NO_CONTENT,
    responses=problems(404, 409),
)
def delete_calibration(
    workspace: WorkspaceDep, act: ActDep, calibration_id: CalibrationRef
) -> None:
    """Delete a finished calibration: its row, its tables and its files."""
    manage.delete_calibration(workspace, act.tenant_id, calibration_id, act=act)


# Before that of evaluations, whose names may hold a slash.

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
    services: ServicesDep,
) -> EventStream:
    """Send an event `progress` whenever status or progress change, and `end` when it has ended.

    `end` holds the resource, or `{"id": …, "status": "deleted"}`; then the stream closes. One that
    has ended already answers so at once. `Last-Event-ID` is not needed: each stream begins with
    how it is now.
    """
    row = await run_in_threadpool(manage.get_calibration, workspace, tenant_id, calibration_id)

    def read() -> Calibration:
        whole = manage.get_calibration(workspace, tenant_id, str(row.id))
        return resource(workspace, tenant_id, whole)

    job = FollowedJob(models.Calibration, row.id)
    return EventStream(JobSubscription(job, view_of(row)), services.job_watch, read)


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
    services: ServicesDep,
) -> EventStream:
    """Send what `GET /calibrations/{calibration_id}/events` sends, of an evaluation."""
    row = await run_in_threadpool(
        evaluations.get_evaluation, workspace, tenant_id, calibration_id, evaluation_name
    )

    def read() -> routes.Evaluation:
        return routes.resource(evaluation_of_id(workspace, tenant_id, row.id))

    job = FollowedJob(models.Evaluation, row.id)
    return EventStream(JobSubscription(job, view_of(row)), services.job_watch, read)
