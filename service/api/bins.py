"""``GET /calibrations/{id}/bins``: the bin tables."""

from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from service.api.dependencies import TenantDep, WorkspaceDep
from service.api.negotiation import chosen_format
from service.api.problems import PROBLEMS
from service.api.report import ReportBin
from service.operations.report import collect_report
from service.operations.report_csv import bins_csv

MEDIA_TYPES = {"json": "application/json", "csv": "text/csv"}

router = APIRouter(tags=["calibrations"])


class Table(BaseModel):
    """The bins of one measure for one event."""

    event: int
    measure: str
    served: bool
    lookup: Literal["step", "interpolated"]
    monotone: bool
    requested_bins: int
    bins: list[ReportBin]


class Tables(BaseModel):
    """All bin tables of a calibration."""

    tables: list[Table]


@router.get(
    "/calibrations/{calibration_id}/bins",
    summary="Read the bin tables",
    response_model=Tables,
    responses={**PROBLEMS, 200: {"content": {MEDIA_TYPES["csv"]: {}}}},
)
def get_bins(
    request: Request,
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    calibration_id: str,
    format: Literal["json", "csv"] | None = None,  # noqa: A002 - the query parameter's name
) -> Response:
    """Give every bin of every table, as JSON or CSV."""
    chosen = format or chosen_format(request, MEDIA_TYPES)
    report = collect_report(workspace, tenant_id, calibration_id)
    if chosen == "csv":
        return Response(bins_csv(report), media_type=MEDIA_TYPES["csv"])
    tables = [
        {
            "event": int(k),
            "measure": measure,
            "served": measure == event["served"],
            **{key: found[key] for key in ("lookup", "monotone", "requested_bins", "bins")},
        }
        for k, event in report["events"].items()
        for measure, found in event["measures"].items()
    ]
    return JSONResponse({"tables": tables})
