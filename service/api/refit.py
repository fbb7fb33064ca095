"""New versions of a calibration without a new run, and which version a name means."""

from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from service.api.body import read_body
from service.api.calibrations import Calibration, resource
from service.api.dependencies import ActDep, CalibrationRef, LimitsDep, WorkspaceDep
from service.api.idempotency_key import (
    IDEMPOTENCY_KEY_HEADER,
    digest_of,
    idempotency_key,
    keyed_request,
    tell_replayed,
)
from service.api.problems import problems
from service.api.waiting import PREFER_HEADER, is_finished, wait_seconds, wait_until_finished
from service.operations import manage_calibrations as manage
from service.operations.config import parse_config
from service.operations.fit_config import FitConfig
from service.operations.only_once import only_once
from service.operations.refit import start_refit

MAX_BODY_BYTES = 1024**2

router = APIRouter(tags=["calibrations"])

SCHEMAS = {"FitConfig": FitConfig.model_json_schema(ref_template="#/components/schemas/{model}")}
REQUEST_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {"$ref": "#/components/schemas/FitConfig", "minProperties": 1},
            "example": {"bins": 20, "lookup": "interpolated"},
        }
    },
}


@router.post(
    "/calibrations/{calibration_id}/refit",
    summary="Fit it anew, without running the model",
    status_code=HTTPStatus.ACCEPTED,
    responses={
        **problems(404, 409, 413, 415, 422),
        201: {"model": Calibration, "description": "Done within `Prefer: wait`."},
    },
    openapi_extra={
        "requestBody": REQUEST_BODY,
        "parameters": [PREFER_HEADER, IDEMPOTENCY_KEY_HEADER],
    },
)
async def post_refit(
    request: Request,
    response: Response,
    workspace: WorkspaceDep,
    act: ActDep,
    limits: LimitsDep,
    calibration_id: CalibrationRef,
) -> Calibration:
    """Queue the next version of its name, with these options changed and all others as they were.

    It works from the stored records of each sample: bins, intervals, measures, serving, targets
    and events that were recorded may change.
    """
    tenant_id, key = act.tenant_id, idempotency_key(request)
    body = await read_body(request, max_bytes=MAX_BODY_BYTES)
    changes = parse_config(body, FitConfig)
    keyed = keyed_request(key, request, digest_of(body))
    start = partial(
        start_refit, workspace, tenant_id, calibration_id, changes, keyed, act=act, limits=limits
    )
    started = await run_in_threadpool(only_once, workspace, tenant_id, keyed, start)
    new_id = str(started.calibration_id)
    seconds = wait_seconds(request)
    row = await wait_until_finished(
        request, lambda: manage.get_calibration(workspace, tenant_id, new_id), seconds
    )
    tell_replayed(response, started)
    response.headers["Location"] = f"/calibrations/{new_id}"
    if is_finished(row):
        response.status_code = HTTPStatus.CREATED
    return await run_in_threadpool(resource, workspace, tenant_id, row)


@router.post(
    "/calibrations/{calibration_id}/promote",
    summary="Let the name mean this version",
    responses=problems(404, 409),
)
def post_promote(
    workspace: WorkspaceDep, act: ActDep, calibration_id: CalibrationRef
) -> Calibration:
    """From now on the name means this version, until another is promoted."""
    row = manage.promote_calibration(workspace, act.tenant_id, calibration_id, act=act)
    return resource(workspace, act.tenant_id, row)
