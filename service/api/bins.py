"""``GET /calibrations/{id}/bins``: the bin tables, with all else that answers depend on."""

from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from service.api.dependencies import CalibrationRef, TenantDep, WorkspaceDep
from service.api.negotiation import chosen_format
from service.api.problems import problems
from service.operations.bins_document import BinsDocument
from service.operations.bins_parquet import NEEDS, bins_parquet, writes_parquet
from service.operations.bins_table import bins_csv
from service.operations.collect_bins import collect_bins

MEDIA_TYPES = {
    "json": "application/json",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}

router = APIRouter(tags=["calibrations"])


@router.get(
    "/calibrations/{calibration_id}/bins",
    summary="Read the bin tables",
    response_model=BinsDocument,
    responses={
        **problems(404, 406, 409, 422),
        200: {
            "content": {MEDIA_TYPES["csv"]: {}, MEDIA_TYPES["parquet"]: {}},
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
    """Give every bin of every table, and all else that answers depend on; CSV has the bins alone.

    The document is what `POST /calibrations/import` takes.
    """
    chosen = bins_format or chosen_format(request.headers.get("accept"), MEDIA_TYPES)
    if chosen == "parquet" and not writes_parquet():
        raise HTTPException(HTTPStatus.NOT_ACCEPTABLE, f"{NEEDS}; ask for JSON or CSV")
    document = collect_bins(workspace, tenant_id, calibration_id)
    # Weak, for the bytes of a strong one would have to be the same in each format.
    headers = {"ETag": f'W/"{document.content_sha256}"', "Vary": "Accept"}
    if _is_known(request, document.content_sha256):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    if chosen == "csv":
        return Response(bins_csv(document), media_type=MEDIA_TYPES["csv"], headers=headers)
    if chosen == "parquet":
        content = bins_parquet(document)
        return Response(content, media_type=MEDIA_TYPES["parquet"], headers=headers)
    return JSONResponse(document.plain(), headers=headers)


def _is_known(request: Request, digest: str) -> bool:
    """Tell whether the caller has this content already."""
    tags = [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]
    return "*" in tags or digest in [tag.removeprefix("W/").strip('"') for tag in tags]
