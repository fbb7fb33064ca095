"""``GET /calibrations/{id}/bins``: the bin tables."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from service.api.dependencies import CalibrationRef, TenantDep, WorkspaceDep
from service.api.negotiation import chosen_format
from service.api.problems import problems
from service.api.report import ReportBin
from service.operations.report import collect_report
from service.operations.report_csv import bins_csv

MEDIA_TYPES = {"json": "application/json", "csv": "text/csv"}

router = APIRouter(tags=["calibrations"])


class Table(BaseModel):
    """The bins of one measure for one event."""

    event: int = Field(description="k of Top-k.")
    measure: str = Field(description="The uncertainty measure whose values are binned.")
    served: bool = Field(description="Whether this table answers for the event.")
    lookup: Literal["step", "interpolated"] = Field(description="How it is read between edges.")
    monotone: bool = Field(description="Whether bins were pooled to make it fall.")
    requested_bins: int = Field(description="Bins asked for, or chosen by `auto`.")
    bins: list[ReportBin] = Field(description="From the most certain to the least.")


class Tables(BaseModel):
    """All bin tables of a calibration."""

    tables: list[Table] = Field(description="One for each event and measure.")


@router.get(
    "/calibrations/{calibration_id}/bins",
    summary="Read the bin tables",
    response_model=Tables,
    responses={**problems(404, 406, 409, 422), 200: {"content": {MEDIA_TYPES["csv"]: {}}}},
)
def get_bins(
    request: Request,
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    calibration_id: CalibrationRef,
    bins_format: Annotated[
        Literal["json", "csv"] | None,
        Query(alias="format", description="Instead of the Accept header."),
    ] = None,
) -> Response:
    """Give every bin of every table, as JSON or CSV."""
    chosen = bins_format or chosen_format(request, MEDIA_TYPES)
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
