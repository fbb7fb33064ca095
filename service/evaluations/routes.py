"""``/calibrations/{id}/evaluations``: further sets on a finished calibration."""

import uuid
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

import models
from service.calibrations.uploaded_files import UploadedFile
from service.errors import InvalidInput
from service.evaluations import evaluations
from service.http.dependencies import (
    ActDep,
    CalibrationRef,
    EvaluationName,
    LimitsDep,
    ServicesDep,
    TenantDep,
    WorkspaceDep,
)
from service.http.job_events import (
    PREFER_HEADER,
    Progress,
    is_finished,
    progress_of,
)
from service.http.problems import problems
from service.http.upload_quota import received_upload
from service.http.uploads import PartRule, SpooledFile
from service.storage.evaluations import MAX_NAME_CHARACTERS

MAX_NAME_BYTES = 1000

# Names may hold a slash: servers decode paths before they are matched.
router = APIRouter(tags=["evaluations"])

REQUEST_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["evaluation", "name"],
                "additionalProperties": False,
                "properties": {
                    "evaluation": {
                        "type": "string",
                        "format": "binary",
                        "description": "A set as for /calibrate; it may lack labels.",
                    },
                    "evaluation_labels": {
                        "type": "string",
                        "format": "binary",
                        "description": "Labels of a set in .npy, as .npy.",
                    },
                    "name": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": MAX_NAME_CHARACTERS,
                        "examples": ["rotated by 30 degrees"],
                        "description": "What the set is called, once per calibration.",
                    },
                },
            }
        }
    },
}


class Evaluation(BaseModel):
    """A further set, and what the calibration's tables say of it."""

    id: uuid.UUID = Field(description="Of this evaluation, for good.")
    name: str = Field(examples=["rotated by 30 degrees"], description="Once per calibration.")
    labelled: bool = Field(description="Whether the set came with labels.")
    status: models.JobStatus = Field(description="Where the job stands.")
    progress: Progress | None = Field(description="While it runs; null else.")
    created_at: datetime = Field(description="When it was accepted, in UTC.")
    finished_at: datetime | None = Field(description="When it ended, in UTC.")
    data: dict[str, Any] = Field(description="Digest and samples.")
    result: dict[str, Any] | None = Field(
        description="Scores and shift by event and measure; `sentence` says whether it is shifted."
    )
    error: dict[str, Any] | None = Field(description="Why it failed, as a problem.")


class Evaluations(BaseModel):
    """All further sets of a calibration, oldest first."""

    evaluations: list[Evaluation] = Field(description="Oldest first.")


def resource(row: models.Evaluation) -> Evaluation:
    """Render a row."""
    return Evaluation(
        id=row.id,
        name=row.name,
        labelled=row.labelled,
        status=row.status,
        progress=progress_of(row),
        created_at=row.created_at,
        finished_at=row.finished_at,
        data=row.data,
        result=row.result,
        error=row.error,
    )


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
    workspace: WorkspaceDep,
    act: ActDep,
    limits: LimitsDep,
    calibration_id: CalibrationRef,
    services: ServicesDep,
) -> Evaluation:
    """Run the model over a further set, labelled or not, and judge it by the tables as they are."""
    tenant_id = act.tenant_id
    max_bytes = services.upload_limits.max_dataset_bytes
    a_set = PartRule(max_bytes=max_bytes, repeatable=False, is_file=True)
    parts = {
        "evaluation": a_set,
        "evaluation_labels": a_set,
        "name": PartRule(max_bytes=MAX_NAME_BYTES, repeatable=False, is_file=False),
    }
    async with received_upload(request, workspace, tenant_id, limits, parts=parts) as spooled:
        name, files = spooled.text("name"), spooled.files("evaluation")
        if not files:
            raise InvalidInput.at("evaluation", "this part is required: a set to judge")
        if name is None:
            raise InvalidInput.at("name", "this part is required: what the set is called")
        labels = spooled.files("evaluation_labels")
        row = await services.lanes.upload.run(
            evaluations.start_evaluation,
            workspace,
            tenant_id,
            calibration_id,
            act=act,
            name=name,
            uploaded=_file(files[0]),
            labels=_file(labels[0]) if labels else None,
            limits=limits,
        )
    of_calibration = str(row.calibration_id)
    row = await services.job_watch.wait_until_finished(
        request, lambda: evaluations.get_evaluation(workspace, tenant_id, of_calibration, name)
    )
    response.headers["Location"] = (
        f"/calibrations/{of_calibration}/evaluations/{quote(name, safe='')}"
    )
    if is_finished(row):
        response.status_code = HTTPStatus.CREATED
    return resource(row)


def _file(found: SpooledFile) -> UploadedFile:
    return UploadedFile(found.path, found.label, found.sha256)


@router.get(
    "/calibrations/{calibration_id}/evaluations",
    summary="List further sets",
    responses=problems(404),
)
def list_evaluations(
    workspace: WorkspaceDep, tenant_id: TenantDep, calibration_id: CalibrationRef
) -> Evaluations:
    """List the further sets of a calibration, oldest first."""
    rows = evaluations.list_evaluations(workspace, tenant_id, calibration_id)
    return Evaluations(evaluations=[resource(row) for row in rows])


@router.get(
    "/calibrations/{calibration_id}/evaluations/{evaluation_name:path}",
    summary="Read one further set",
    responses=problems(404),
)
def get_evaluation(
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    calibration_id: CalibrationRef,
    evaluation_name: EvaluationName,
) -> Evaluation:
    """Read what was found of a further set."""
    return resource(
        evaluations.get_evaluation(workspace, tenant_id, calibration_id, evaluation_name)
    )


@router.post(
    "/calibrations/{calibration_id}/evaluations/{evaluation_name:path}/cancel",
    summary="Cancel a queued or running evaluation",
    status_code=HTTPStatus.ACCEPTED,
    responses=problems(404, 409),
)
def cancel_evaluation(
    workspace: WorkspaceDep,
    act: ActDep,
    calibration_id: CalibrationRef,
    evaluation_name: EvaluationName,
) -> Evaluation:
    """Ask an evaluation to stop; it does so within a batch."""
    return resource(
        evaluations.cancel_evaluation(
            workspace, act.tenant_id, calibration_id, evaluation_name, act=act
        )
    )


@router.delete(
    "/calibrations/{calibration_id}/evaluations/{evaluation_name:path}",
    summary="Delete a further set and what was found of it",
    status_code=HTTPStatus.NO_CONTENT,
    responses=problems(404, 409),
)
def delete_evaluation(
    workspace: WorkspaceDep,
    act: ActDep,
    calibration_id: CalibrationRef,
    evaluation_name: EvaluationName,
) -> None:
    """Delete a further set that has ended; its name may be used again."""
    evaluations.delete_evaluation(
        workspace, act.tenant_id, calibration_id, evaluation_name, act=act
    )
