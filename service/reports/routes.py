"""``GET /report``: the scores of a calibration."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from service.calibrations.schemas import Finding
from service.errors import InvalidInput
from service.exports.parity import Parity
from service.http.dependencies import ServicesDep, TenantDep, WorkspaceDep
from service.http.negotiation import chosen_format
from service.http.problems import problems
from service.reports.comparison import compare_calibrations
from service.reports.csv_table import report_csv
from service.reports.markdown import model_card, report_markdown
from service.reports.report import collect_report
from service.reports.schemas import ComparedMeasure, Difference

MEDIA_TYPES = {"json": "application/json", "csv": "text/csv", "markdown": "text/markdown"}

router = APIRouter(tags=["report"])


class FoldScore(BaseModel):
    """A score over the folds of the cross-validation; null where no fold defines it."""

    mean: float | None = Field(description="Over the folds.")
    std: float | None = Field(description="Between the folds.")
    folds: int = Field(description="Folds that define the score.")
    pooled: float | None = Field(description="The score of all out-of-fold answers together.")


class ReportBin(BaseModel):
    """Samples with an uncertainty in (lower, upper]."""

    lower: float | None = Field(description="Null: no limit.")
    upper: float | None = Field(description="Null: no limit.")
    count: int = Field(description="Calibration samples in it.")
    hits: int = Field(description="Those for which the event holds.")
    weight: float = Field(description="Its share of the calibration samples.")
    probability: float = Field(description="What is served: hits / count, regularised.")
    interval: tuple[float, float] = Field(description="Of the probability.")
    mean_uncertainty: float | None = Field(description="Of its samples; null without any.")
    odds_ratio: float = Field(description="Its odds against those of the whole set.")


class Scored(BaseModel):
    """Scores by name: cross-validated, and on the evaluation set if one was sent."""

    scores: dict[str, FoldScore] = Field(description="Cross-validated, by name.")
    evaluation: dict[str, float | None] | None = Field(
        description="On the evaluation set, by name; null without one."
    )


class BaselineReport(Scored):
    """What the bins are to beat: its scores, and how they differ from those of the bins."""

    log_floor: float | None = Field(None, description="Where its probability is clipped for logs.")
    parameters: dict[str, float] = Field({}, description="What was learnt from all samples.")
    ece_band: dict[str, Any] | None = Field(
        None, description="The ECE beside that of a perfectly calibrated baseline."
    )
    evaluation_ece_band: dict[str, Any] | None = Field(
        None, description="The same on the evaluation set."
    )
    difference: dict[str, dict[str, Difference]] = Field(
        {}, description="By phase, `cross_validation` or `evaluation`, and score."
    )


class MeasureReport(Scored):
    """Scores and bins of one uncertainty measure."""

    lookup: Literal["step", "interpolated"] = Field(description="How it is read between edges.")
    monotone: bool = Field(description="Whether bins were pooled to make it fall.")
    requested_bins: int = Field(description="Bins asked for, or chosen by `auto`.")
    quantile_bins: int = Field(description="Bins before pooling; fewer than asked for by ties.")
    candidates: list[dict[str, Any]] = Field(description="Numbers of bins tried by `auto`.")
    bins: list[ReportBin] = Field(description="From the most certain to the least.")
    coarse: dict[str, Any] | None = Field(None, description="The most samples at a hit rate.")
    ood_thresholds: dict[str, float] = Field({}, description="Uncertainty at each level.")
    selective: list[dict[str, Any]] = Field([], description="What may be accepted at each risk.")
    guarantee: dict[str, Any] | None = Field(None, description="For all bins at once, or why not.")
    ece_band: dict[str, Any] | None = Field(
        None, description="The ECE beside that of a perfectly calibrated table."
    )
    evaluation_ece_band: dict[str, Any] | None = Field(
        None, description="The same on the evaluation set."
    )
    rank_grid: dict[str, Any] | None = Field(
        None, description="The unmerged quantiles with their tie keys, for exact tests on traffic."
    )
    difference: dict[str, Difference] = Field(
        {}, description="From the measure that is served, over the folds, by score."
    )
    reliability: dict[str, Any] | None = Field(
        None, description="Of the measure served: what was said beside what came true."
    )
    curves: dict[str, Any] = Field(
        {}, description="Risk-coverage with its band, ROC, precision-recall; a scatter of the loss."
    )


class EventReport(BaseModel):
    """One event: the label is among the k most probable classes."""

    accuracy: float = Field(description="Share of the calibration set for which it holds.")
    served: str = Field(description="The measure that answers.")
    verdict: dict[str, Any] | None = Field(
        None, description="Which probability is best and by how much, in a sentence."
    )
    measures: dict[str, MeasureReport] = Field(description="By name.")
    comparison: list[ComparedMeasure] = Field(
        description="The measures side by side, that of the least cross-validated NLL first."
    )
    baselines: dict[str, BaselineReport] = Field(description="By name.")
    oracle: Scored | None = Field(
        None, description="Bins of the loss, which knows the label: never served."
    )
    figures: dict[str, Any] = Field(
        description="What a report begins with: accuracy, calibration error, detection of errors "
        "and the risk of what is accepted, each with its interval or spread."
    )
    mislabelled: list[dict[str, Any]] = Field(
        [], description="Samples whose label is more likely wrong than the model."
    )


class FurtherEvent(BaseModel):
    """What the served table says of a further set, for one event."""

    accuracy: float | None = Field(description="Null without labels.")
    served: str = Field(description="The measure that answers, whose table this is about.")
    shifted: bool = Field(description="Whether the set is told from the calibration set.")
    scores: dict[str, float | None] | None = Field(description="Null without labels.")
    discarded: dict[str, float] = Field(
        description="Share of its samples above each out-of-distribution threshold."
    )


class FurtherSet(BaseModel):
    """A further set that has been judged; all that was found is at `/evaluations/{name}`."""

    name: str = Field(description="As it was sent with.")
    labelled: bool = Field(description="Whether it came with labels.")
    finished_at: datetime = Field(description="When it had been judged, in UTC.")
    samples: int = Field(description="How many it holds.")
    shifted: bool = Field(description="Whether it is in any event.")
    sentence: str = Field(description="The same in words.")
    events: dict[str, FurtherEvent] = Field(description="By event, `1` for Top-1.")
    confidence: dict[str, Any] | None = Field(None, description="Histogram of the largest softmax.")
    entropy: dict[str, Any] | None = Field(None, description="Histogram, if entropy was recorded.")
    above_confidence: list[dict[str, Any]] | None = Field(
        None, description="Count and share of either set above each confidence."
    )
    by_confidence: list[dict[str, Any]] | None = Field(
        None, description="Accuracy above each confidence; null without labels."
    )


class ExportReport(BaseModel):
    """The calibrated model as one file, from `/calibrations/{id}/model.onnx`."""

    sha256: str = Field(description="Of the file.")
    size: int = Field(description="In bytes.")
    created_at: datetime = Field(description="When it was made, in UTC.")
    parity: Parity = Field(description="Beside the service.")


class Report(BaseModel):
    """Everything that was learned, and from what."""

    calibration: dict[str, Any] = Field(description="What it is called, and when it was made.")
    events: dict[str, EventReport] = Field(description="By k, `1` for Top-1.")
    model_scores: dict[str, Any] = Field(description="Of the model's own softmax, by set.")
    export: ExportReport | None = Field(
        None, description="The calibrated file; null until it is first asked for."
    )
    evaluations: list[FurtherSet] = Field(description="Further sets, the oldest first.")
    warnings: list[str] = Field(description="Sentences worth reading.")
    findings: list[Finding] = Field(description="What looks wrong with it.")
    provenance: dict[str, Any] = Field(description="Digests, counts, configuration and versions.")


class Comparisons(BaseModel):
    """Several reports, and each calibration compared with the first."""

    calibrations: list[Report] = Field(description="In the order asked for.")
    comparisons: list[dict[str, Any]] = Field(
        description="Paired differences by event, and what they say in a sentence each."
    )


@router.get(
    "/report",
    summary="Read the scores of a calibration, or compare several",
    response_model=Report | Comparisons,
    responses={
        **problems(404, 406, 409, 422),
        200: {"content": {MEDIA_TYPES["csv"]: {}, MEDIA_TYPES["markdown"]: {}, "text/html": {}}},
    },
)
async def get_report(
    request: Request,
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    calibration: Annotated[
        list[str],
        Query(
            min_length=1,
            description="An id, a name, or `name@version`; several are set side by side.",
        ),
    ],
    services: ServicesDep,
    report_format: Annotated[
        Literal["json", "csv", "markdown", "model-card", "html"] | None,
        Query(
            alias="format",
            description="Instead of the Accept header. `html` is the page as one file, "
            "`model-card` Markdown to publish a model with.",
        ),
    ] = None,
) -> Response:
    """Give scores, bins, baselines and provenance as JSON, CSV, Markdown or HTML."""
    chosen = report_format or chosen_format(request.headers.get("accept"), MEDIA_TYPES)
    if len(calibration) > 1:
        if chosen != "json":
            raise InvalidInput.at("format", "several calibrations are compared in JSON alone")
        compared = await run_in_threadpool(compare_calibrations, workspace, tenant_id, calibration)
        return JSONResponse(compared)
    report = await run_in_threadpool(collect_report, workspace, tenant_id, calibration[0])
    if chosen == "html":
        return await services.saved_report(report)
    return await run_in_threadpool(_formatted, report, chosen)


def _formatted(report: dict[str, Any], chosen: str) -> Response:
    if chosen == "csv":
        return Response(report_csv(report), media_type=MEDIA_TYPES["csv"])
    if chosen == "markdown":
        return Response(report_markdown(report), media_type=MEDIA_TYPES["markdown"])
    if chosen == "model-card":
        return Response(model_card(report), media_type=MEDIA_TYPES["markdown"])
    return JSONResponse(report)
