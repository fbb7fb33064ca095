"""Routes of bin tables: export, import and refit."""

from functools import partial
from http import HTTPStatus
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Query, Request, Response

from service.bins.export import bins_csv, bins_parquet, export_bins
from service.bins.import_bins import import_bins
from service.bins.refit import start_refit
from service.calibrations.config import MAX_CONFIG_BYTES, parse_config
from service.calibrations.fit_config import FitConfig
from service.calibrations.routes import calibration_response, start_once
from service.calibrations.schemas import Calibration
from service.errors import UnsupportedFormat
from service.http.bodies import json_body, read_body
from service.http.dependencies import (
    CalibrationRef,
    CallDep,
    ServicesDep,
    TenantDep,
    WorkspaceDep,
    in_documents_lane,
)
from service.http.idempotency import IDEMPOTENCY_KEY_HEADER, digest_of
from service.http.job_events import PREFER_HEADER
from service.http.negotiation import chosen_format
from service.http.problems import problems
from service.json_pieces import LargeJSONResponse

MEDIA_TYPES = {
    "json": "application/json",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}
TABLES = {"csv": bins_csv, "parquet": bins_parquet}

router = APIRouter(tags=["calibrations"])


@router.get(
    "/calibrations/{calibration_id}/bins",
    summary="Read the bin tables",
    responses={
        **problems(404, 406, 409, 422),
        200: {
            "content": {
                MEDIA_TYPES["json"]: {"schema": {"$ref": "#/components/schemas/BinsDocument"}},
                MEDIA_TYPES["csv"]: {},
                MEDIA_TYPES["parquet"]: {},
            },
            "headers": {
                "ETag": {
                    "description": "A weak validator: the digest of the content, in each format.",
                    "schema": {"type": "string"},
                }
            },
        },
        304: {"description": "`If-None-Match` names the digest."},
    },
)
@in_documents_lane
def get_bins(
    request: Request,
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    calibration_id: CalibrationRef,
    bins_format: Annotated[
        Literal["json", "csv", "parquet"] | None,
        Query(alias="format", description="Instead of the Accept header."),
    ] = None,
) -> Response:
    """Return all bin tables and everything else that answers depend on; CSV has only the bins.

    `POST /calibrations/import` takes the JSON document.
    """
    chosen = bins_format or chosen_format(request.headers.get("accept"), MEDIA_TYPES)
    known = request.headers.get("if-none-match", "")
    document = export_bins(workspace, tenant_id, calibration_id)
    # A weak validator, since the bytes differ between formats.
    headers = {"ETag": f'W/"{document.content_sha256}"', "Vary": "Accept"}
    if _is_known(known, document.content_sha256):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    if chosen in TABLES:
        return Response(TABLES[chosen](document), media_type=MEDIA_TYPES[chosen], headers=headers)
    return LargeJSONResponse(msgspec.to_builtins(document), headers=headers)


def _is_known(known: str, digest: str) -> bool:
    """Tell whether the caller already has this content."""
    tags = [tag.strip() for tag in known.split(",")]
    return "*" in tags or digest in [tag.removeprefix("W/").strip('"') for tag in tags]


MAX_BODY_BYTES = 8 * 1024**2
JSON = "application/json"


@router.post(
    "/calibrations/import",
    summary="Make a calibration from bin tables",
    status_code=HTTPStatus.CREATED,
    responses=problems(400, 404, 413, 415, 422),
    openapi_extra={
        "requestBody": json_body("BinsDocument"),
        "parameters": [IDEMPOTENCY_KEY_HEADER],
    },
)
async def post_import(
    request: Request,
    response: Response,
    ctx: CallDep,
    services: ServicesDep,
    name: Annotated[
        str | None, Query(description="Name of the calibration; by default that of the document.")
    ] = None,
) -> Calibration:
    """Import a document of `GET /calibrations/{calibration_id}/bins`, with equal answers.

    The document does not contain the model, so this service must have calibrated the model before.
    There are no scores, because there are no samples.
    """
    media_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if media_type != JSON:
        raise UnsupportedFormat.at("Content-Type", f"expected {JSON}, got {media_type!r}")
    body = await read_body(request, max_bytes=MAX_BODY_BYTES)
    start = partial(import_bins, body=body, name=name)
    started = await start_once(request, ctx, digest_of(body), start, lane=services.lanes.documents)
    return await calibration_response(request, response, ctx, services, started)


@router.post(
    "/calibrations/{calibration_id}/refit",
    summary="Fit it anew, without running the model",
    status_code=HTTPStatus.ACCEPTED,
    responses={
        **problems(404, 409, 413, 415, 422),
        201: {"model": Calibration, "description": "Done within `Prefer: wait`."},
    },
    openapi_extra={
        "requestBody": json_body("FitConfig", minProperties=1),
        "parameters": [PREFER_HEADER, IDEMPOTENCY_KEY_HEADER],
    },
)
async def post_refit(
    request: Request,
    response: Response,
    ctx: CallDep,
    services: ServicesDep,
    calibration_id: CalibrationRef,
) -> Calibration:
    """Queue the next version of the name with these options changed.

    It uses the stored records of each sample. Bins, intervals, measures, serving, targets and
    recorded events may change.
    """
    body = await read_body(request, max_bytes=MAX_CONFIG_BYTES)
    changes = parse_config(body, FitConfig)
    start = partial(start_refit, reference=calibration_id, changes=changes)
    started = await start_once(request, ctx, digest_of(body), start)
    return await calibration_response(request, response, ctx, services, started)
