"""``/calibrations/{id}/evaluations``: further sets on a finished calibration."""

import uuid
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

import models
from service.calibrations.routes import EVENT_ROUTE, event_stream
from service.calibrations.upload.upload_form import form_body, part_rules
from service.errors import InvalidInput
from service.evaluations import evaluations
from service.evaluations.variation import SCHEMAS, TEXTS, variation
from service.http.dependencies import (
    CalibrationRef,
    CallDep,
    EvaluationName,
    PageCursor,
    PageLimit,
    ServicesDep,
)
from service.http.job_events import (
    PREFER_HEADER,
    EventStream,
    Progress,
    answer_job,
    job_resource,
)
from service.http.problems import problems
from service.http.upload_quota import received_upload
from service.storage.evaluations import MAX_NAME_CHARACTERS

MAX_NAME_BYTES = 1000

# Names may contain a slash, since servers decode paths before routing.
router = APIRouter(tags=["evaluations"])

FILES = {
    "evaluation": "A set as for /calibrate; it may lack labels, and -1 means none of the classes.",
    "evaluation_labels": "Labels of a set in .npy, as .npy.",
}
REQUEST_BODY = form_body(
    FILES,
    required=["evaluation", "name"],
    name={
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_NAME_CHARACTERS,
        "examples": ["rotated by 30 degrees"],
        "description": "What the set is called, once per calibration.",
    },
    **SCHEMAS,
)


class Evaluation(BaseModel):
    """A further set and its evaluation by the calibration's tables."""

    id: uuid.UUID = Field(description="Of this evaluation, for good.")
    name: str = Field(examples=["rotated by 30 degrees"], description="Once per calibration.")
    labelled: bool = Field(description="Whether the set came with labels.")
    role: models.SetRole = Field(description="Whether it changes the verdict.")
    type: str | None = Field(description="How its samples were changed.", examples=["rotation"])
    intensity: float | None = Field(description="How much they were changed.")
    status: models.JobStatus = Field(description="Where the job stands.")
    progress: Progress | None = Field(description="While it runs; null else.")
    created_at: datetime = Field(description="When it was accepted, in UTC.")
    finished_at: datetime | None = Field(description="When it ended, in UTC.")
    data: dict[str, Any] = Field(description="Digest and samples.")
    result: dict[str, Any] | None = Field(
        description="Scores and shift by event and measure; `sentence` says whether it is shifted, "
        "and `findings` what looks wrong with its labels."
    )
    error: dict[str, Any] | None = Field(description="Why it failed, as a problem.")


class Evaluations(BaseModel):
    """A page of the further sets of a calibration, oldest first."""

    evaluations: list[Evaluation] = Field(description="Oldest first.")
    next_cursor: str | None = Field(description="`cursor` of the next page; null at the end.")


def resource(row: models.Evaluation) -> Evaluation:
    """Return the resource of a row."""
    return job_resource(Evaluation, row)


@router.post(
    "/calibrations/{calibration_id}/evaluations",
    summary="Judge a further set",
    status_code=HTTPStatus.ACCEPTED,
    responses={
        **problems(404, 409, 400, 413, 415, 422, 504, 507),
        201: {"model": Evaluation, "description": "Done within `Prefer: wait`."},
    },
    openapi_extra={"requestBody": REQUEST_BODY, "parameters": [PREFER_HEADER]},
)
async def post_evaluation(
    request: Request,
    response: Response,
    ctx: CallDep,
    calibration_id: CalibrationRef,
    services: ServicesDep,
) -> Evaluation:
    """Run the model over a further set, labelled or not, and judge it by the tables as they are."""
    parts = part_rules(services.upload_limits, FILES, {"name": MAX_NAME_BYTES, **TEXTS})
    async with received_upload(
        request, ctx.workspace, ctx.tenant_id, ctx.limits, parts=parts
    ) as spooled:
        name, files = spooled.text("name"), spooled.files("evaluation")
        if not files:
            raise InvalidInput.at("evaluation", "this part is required: a set to judge")
        if name is None:
            raise InvalidInput.at("name", "this part is required: what the set is called")
        changed = variation(*(spooled.text(part) for part in TEXTS))
        row = await services.lanes.upload.run(
            ctx.tenant_id,
            evaluations.start_evaluation,
            ctx,
            calibration_id,
            name=name,
            variation=changed,
            uploaded=files[0],
            labels=next(iter(spooled.files("evaluation_labels")), None),
        )
    of_calibration = str(row.calibration_id)
    return resource(
        await answer_job(
            request,
            response,
            services.job_watch,
            f"/calibrations/{of_calibration}/evaluations/{quote(name, safe='')}",
            lambda: evaluations.get_evaluation(ctx, of_calibration, name),
        )
    )


@router.get(
    "/calibrations/{calibration_id}/evaluations",
    summary="List further sets",
    responses=problems(404, 422),
)
def list_evaluations(
    ctx: CallDep, calibration_id: CalibrationRef, limit: PageLimit = 50, cursor: PageCursor = None
) -> Evaluations:
    """List the further sets of a calibration, oldest first."""
    rows, cursor = evaluations.list_evaluations(ctx, calibration_id, cursor=cursor, limit=limit)
    return Evaluations(evaluations=[resource(row) for row in rows], next_cursor=cursor)


# Registered before the route of an evaluation, whose name may contain a slash.
@router.get(
    "/calibrations/{calibration_id}/evaluations/{evaluation_name:path}/events",
    summary="Follow an evaluation",
    **EVENT_ROUTE,
)
async def follow_evaluation(
    ctx: CallDep,
    calibration_id: CalibrationRef,
    evaluation_name: EvaluationName,
    services: ServicesDep,
) -> EventStream:
    """Send what `GET /calibrations/{calibration_id}/events` sends, of an evaluation."""
    row = await run_in_threadpool(evaluations.get_evaluation, ctx, calibration_id, evaluation_name)

    def read() -> Evaluation:
        return resource(evaluations.evaluation_of_id(ctx, row.id))

    return event_stream(ctx, services.job_watch, row, read)


@router.get(
    "/calibrations/{calibration_id}/evaluations/{evaluation_name:path}",
    summary="Read one further set",
    responses=problems(404),
)
def get_evaluation(
    ctx: CallDep, calibration_id: CalibrationRef, evaluation_name: EvaluationName
) -> Evaluation:
    """Read what was found of a further set."""
    return resource(evaluations.get_evaluation(ctx, calibration_id, evaluation_name))


@router.post(
    "/calibrations/{calibration_id}/evaluations/{evaluation_name:path}/cancel",
    summary="Cancel a queued or running evaluation",
    status_code=HTTPStatus.ACCEPTED,
    responses=problems(404, 409),
)
def cancel_evaluation(
    ctx: CallDep, calibration_id: CalibrationRef, evaluation_name: EvaluationName
) -> Evaluation:
    """Ask an evaluation to stop; it does so within a batch."""
    return resource(evaluations.cancel_evaluation(ctx, calibration_id, evaluation_name))


@router.delete(
    "/calibrations/{calibration_id}/evaluations/{evaluation_name:path}",
    summary="Delete a further set and what was found of it",
    status_code=HTTPStatus.NO_CONTENT,
    responses=problems(404, 409),
)
def delete_evaluation(
    ctx: CallDep, calibration_id: CalibrationRef, evaluation_name: EvaluationName
) -> None:
    """Delete a further set that has ended; its name may be used again."""
    evaluations.delete_evaluation(ctx, calibration_id, evaluation_name)
