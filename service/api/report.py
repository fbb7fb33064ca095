"""``GET /report``: the scores of a calibration."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from service.api.dependencies import TenantDep, WorkspaceDep
from service.api.negotiation import chosen_format
from service.api.problems import PROBLEMS
from service.operations.report import collect_report
from service.operations.report_csv import report_csv
from service.operations.report_markdown import report_markdown

MEDIA_TYPES = {"json": "application/json", "csv": "text/csv", "markdown": "text/markdown"}

router = APIRouter(tags=["report"])


class FoldScore(BaseModel):
    """A score over the folds of the cross-validation; null where no fold defines it."""

    mean: float | None
    std: float | None
    folds: int = Field(description="Folds that define the score.")
    pooled: float | None = Field(description="The score of all out-of-fold answers together.")


class ReportBin(BaseModel):
    """Samples with an uncertainty in (lower, upper]."""

    lower: float | None = Field(description="Null: no limit.")
    upper: float | None = Field(description="Null: no limit.")
    count: int
    hits: int
    weight: float
    probability: float
    interval: tuple[float, float]
    mean_uncertainty: float | None
    odds_ratio: float


class BaselineReport(BaseModel):
    """Scores of what the bins are to beat."""

    scores: dict[str, FoldScore]
    evaluation: dict[str, float | None] | None


class MeasureReport(BaselineReport):
    """Scores and bins of one uncertainty measure."""

    lookup: Literal["step", "interpolated"]
    monotone: bool
    requested_bins: int
    candidates: list[dict[str, Any]] = Field(description="Numbers of bins tried by `auto`.")
    bins: list[ReportBin]


class EventReport(BaseModel):
    """One event: the label is among the k most probable classes."""

    accuracy: float
    served: str
    measures: dict[str, MeasureReport]
    baselines: dict[str, BaselineReport]


class Report(BaseModel):
    """Everything that was learned, and from what."""

    calibration: dict[str, Any]
    events: dict[str, EventReport]
    warnings: list[str]
    provenance: dict[str, Any]


@router.get(
    "/report",
    summary="Read the scores of a calibration",
    response_model=Report,
    responses={
        **PROBLEMS,
        200: {"content": {MEDIA_TYPES["csv"]: {}, MEDIA_TYPES["markdown"]: {}}},
    },
)
def get_report(
    request: Request,
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    calibration: Annotated[str, Query(description="An id, a name, or `name@version`.")],
    report_format: Annotated[
        Literal["json", "csv", "markdown"] | None,
        Query(alias="format", description="Instead of the Accept header."),
    ] = None,
) -> Response:
    """Give scores, bins, baselines and provenance as JSON, CSV or Markdown."""
    chosen = report_format or chosen_format(request, MEDIA_TYPES)
    report = collect_report(workspace, tenant_id, calibration)
    if chosen == "csv":
        return Response(report_csv(report), media_type=MEDIA_TYPES["csv"])
    if chosen == "markdown":
        return Response(report_markdown(report), media_type=MEDIA_TYPES["markdown"])
    return JSONResponse(report)
