"""``POST /calibrations/import``: a calibration from the bin tables of another."""

from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from service.api.body import read_body
from service.api.calibrations import Calibration, resource
from service.api.dependencies import ActDep, LanesDep, WorkspaceDep
from service.api.idempotency_key import (
    IDEMPOTENCY_KEY_HEADER,
    digest_of,
    idempotency_key,
    keyed_request,
    tell_replayed,
)
from service.api.problems import problems
from service.errors import UnsupportedFormat
from service.operations.bins_document import BinsDocument
from service.operations.import_bins import import_bins
from service.operations.manage_calibrations import get_calibration
from service.operations.only_once import only_once

MAX_BODY_BYTES = 32 * 1024**2
JSON = "application/json"

router = APIRouter(tags=["calibrations"])

SCHEMAS = {
    "BinsDocument": BinsDocument.model_json_schema(ref_template="#/components/schemas/{model}")
}
REQUEST_BODY: dict[str, Any] = {
    "required": True,
    "content": {JSON: {"schema": {"$ref": "#/components/schemas/BinsDocument"}}},
}


@router.post(
    "/calibrations/import",
    summary="Make a calibration from bin tables",
    status_code=HTTPStatus.CREATED,
    responses=problems(400, 404, 413, 415, 422),
    openapi_extra={"requestBody": REQUEST_BODY, "parameters": [IDEMPOTENCY_KEY_HEADER]},
)
async def post_import(
    request: Request,
    response: Response,
    workspace: WorkspaceDep,
    act: ActDep,
    lanes: LanesDep,
    name: Annotated[
        str | None, Query(description="What it is called; else as the document says.")
    ] = None,
) -> Calibration:
    """Take what `GET /calibrations/{calibration_id}/bins` gave, and answer as that answers.

    The model is not part of it: it must have been calibrated here once. Nothing is judged, for
    there are no samples.
    """
    tenant_id, key = act.tenant_id, idempotency_key(request)
    media_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if media_type != JSON:
        raise UnsupportedFormat.at("Content-Type", f"expected {JSON}, got {media_type!r}")
    body = await read_body(request, max_bytes=MAX_BODY_BYTES)
    keyed = keyed_request(key, request, digest_of(body))
    start = partial(import_bins, workspace, tenant_id, body, name, keyed, act=act)
    started = await lanes.upload.run(only_once, workspace, tenant_id, keyed, start)
    made = str(started.calibration_id)
    tell_replayed(response, started)
    response.headers["Location"] = f"/calibrations/{made}"
    row = await run_in_threadpool(get_calibration, workspace, tenant_id, made)
    return await run_in_threadpool(resource, workspace, tenant_id, row)
