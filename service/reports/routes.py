"""``GET /report``: the scores of a calibration."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from howsure.statistics.bins.lookup import Lookup
from service.calibrations.schemas import Finding
from service.errors import InvalidInput
from service.exports.parity import Parity
from service.http.dependencies import ServicesDep, TenantDep, WorkspaceDep, in_documents_lane
from service.http.negotiation import chosen_format
from service.http.problems import problems
from service.json_pieces import LargeJSONResponse
from service.reports.comparison.compare import compare_calibrations
from service.reports.confusion import collect_full_report
from service.reports.csv_table import report_csv
from service.reports.markdown import model_card, report_markdown
from service.reports.schemas import ComparedMeasure, Difference
from service.reports.summary import Status

MEDIA_TYPES = {"json": "application/json", "csv": "text/csv", "markdown": "text/markdown"}
TEXTS = {"csv": report_csv, "markdown": report_markdown, "model-card": model_card}

router = APIRouter(tags=["report"])


class FoldScore(BaseModel):
    """A score over the folds of the cross-validation; null if no fold defines it."""

    mean: float | None = Field(description="Mean over the folds.")
    std: float | None = Field(description="Standard deviation between the folds.")
    folds: int = Field(description="Folds that define the score.")
    pooled: float | None = Field(description="The score of all out-of-fold answers together.")


class ReportBin(BaseModel):
    """Samples with an uncertainty in (lower, upper]."""

    lower: float | None = Field(description="Null: no limit.")
    upper: float | None = Field(description="Null: no limit.")
    count: int = Field(description="Number of calibration samples.")
    hits: int = Field(description="Samples for which the event holds.")
    weight: float = Field(description="Share of the calibration samples.")
    probability: float = Field(description="The served probability: hits / count, regularised.")
    interval: tuple[float, float] = Field(description="Interval of the probability.")
    mean_uncertainty: float | None = Field(description="Mean of its samples; null without any.")
    odds_ratio: float | None = Field(
        description="Its odds relative to those of the whole set; null if they overflow."
    )


class Scored(BaseModel):
    """Scores by name: cross-validated, and on the evaluation set if there is one."""

    scores: dict[str, FoldScore] = Field(description="Cross-validated scores by name.")
    evaluation: dict[str, float | None] | None = Field(
        description="Scores on the evaluation set by name; null without one."
    )


class Method(Scored):
    """Scores of a method, and whether chance explains its calibration error."""

    ece_band: dict[str, Any] | None = Field(
        None, description="The ECE beside that of the same method, perfectly calibrated."
    )
    evaluation_ece_band: dict[str, Any] | None = Field(
        None, description="The same on the evaluation set."
    )


class BaselineReport(Method):
    """A method to compare the bins with, and its differences from them."""

    log_floor: float | None = Field(None, description="Probabilities are clipped here for logs.")
    parameters: dict[str, float] = Field({}, description="Parameters fitted to all samples.")
    difference: dict[str, dict[str, Difference]] = Field(
        {}, description="By phase, `cross_validation` or `evaluation`, and score."
    )


class MeasureReport(Method):
    """Scores and bins of one uncertainty measure."""

    lookup: Lookup = Field(description="How a probability is read from the bins.")
    monotone: bool = Field(description="Whether bins were pooled until the probability falls.")
    requested_bins: int = Field(description="Requested number of bins, or that chosen by `auto`.")
    quantile_bins: int = Field(description="Bins before pooling; ties make fewer than requested.")
    candidates: list[dict[str, Any]] = Field(description="Numbers of bins tried by `auto`.")
    bins: list[ReportBin] = Field(description="From the most certain to the least.")
    effective: dict[str, Any] | None = Field(
        None,
        description="Of a set with weights or groups: weighted hit rates, effective samples and "
        "shares of the bins; `probability` and `interval` follow them.",
    )
    coarse: dict[str, Any] | None = Field(None, description="Largest cells at given hit rates.")
    ood_thresholds: dict[str, float] = Field({}, description="Uncertainty at each level.")
    selective: list[dict[str, Any]] = Field([], description="Accepted samples at each risk.")
    guarantee: dict[str, Any] | None = Field(None, description="For all bins at once, or why not.")
    rank_grid: dict[str, Any] | None = Field(
        None, description="Unmerged quantiles with their tie keys, for exact tests on traffic."
    )
    difference: dict[str, Difference] = Field(
        {}, description="From the served measure, over the folds, by score."
    )
    reliability: dict[str, Any] | None = Field(
        None, description="Probabilities and hit rates; only for the served measure."
    )
    learned: dict[str, Any] | None = Field(
        None,
        description="Only for the measure `learned`: temperature, parts and weights of its "
        "formula; by predicted class, the change of the log-odds and the samples.",
    )
    curves: dict[str, Any] = Field(
        {}, description="Risk-coverage with its band, ROC, precision-recall, scatter of the loss."
    )


class EventReport(BaseModel):
    """One event: the label is among the k most probable classes."""

    accuracy: float = Field(description="Share of the calibration set for which it holds.")
    served: str = Field(description="The served measure.")
    assurance: str = Field(description="Of its error rates: `certified`, or why estimated.")
    verdict: dict[str, Any] | None = Field(
        None, description="The best method and its lead, in a sentence."
    )
    measures: dict[str, MeasureReport] = Field(description="Measures by name.")
    comparison: list[ComparedMeasure] = Field(
        description="The measures, by ascending cross-validated NLL."
    )
    baselines: dict[str, BaselineReport] = Field(description="Baselines by name.")
    oracle: Scored | None = Field(
        None, description="Bins of the loss, which uses the label; never served."
    )
    figures: dict[str, Any] = Field(
        description="Accuracy, calibration error, error detection and risk of accepted answers, "
        "each with its interval or spread. All but the risk are of `set`."
    )
    confusion: dict[str, Any] | None = Field(
        None,
        description="Accepted answers of the calibration set by label and predicted class: Top-1 "
        "at the first requested error rate with a threshold, or all answers without one.",
    )
    mislabelled: list[dict[str, Any]] = Field(
        [], description="Wrong predictions in the most reliable bins; their labels may be wrong."
    )


class FurtherEvent(BaseModel):
    """One event on a further set, by the served table."""

    accuracy: float | None = Field(description="Null without labels.")
    served: str = Field(description="The served measure.")
    shifted: bool = Field(description="Whether the set differs from the calibration set.")
    verdict: str = Field("", description="The outcome in a few words.")
    stated: float | None = Field(None, description="Mean probability; null without labels.")
    scores: dict[str, float | None] | None = Field(description="Null without labels.")
    population: dict[str, Any] | None = Field(
        None, description="How the uncertainties differ from those of the calibration set."
    )
    discarded: dict[str, float] = Field(
        description="Share of samples above each out-of-distribution threshold."
    )
    accepted: list[dict[str, Any]] = Field(
        [],
        description="Accepted answers and errors at each tested threshold, their share and error "
        "rate with its interval; empty without labels.",
    )
    unpromised: dict[str, Any] | None = Field(
        None,
        description="The same at the active operating point, if it was not chosen by an error "
        "rate; its `target` has its share or threshold.",
    )
    disproves: bool = Field(
        False,
        description="Whether clearly more answers are wrong than promised or stated.",
    )


class FurtherSet(BaseModel):
    """An evaluated further set; `/evaluations/{name}` has the whole result."""

    name: str = Field(description="The name it was sent with.")
    labelled: bool = Field(description="Whether it has labels.")
    finished_at: datetime = Field(description="End of its evaluation, in UTC.")
    samples: int = Field(description="Number of samples.")
    sha256: str = Field(description="Digest of the set.")
    shifted: bool = Field(description="Whether any event is shifted.")
    outcome: str | None = Field(
        None,
        description="`shifted`, `worse`, `miscalibrated`, `better` or `alike`; null in results of "
        "earlier releases.",
    )
    findings: list[Finding] = Field([], description="Likely problems of its labels or scores.")
    sentence: str = Field(description="The result in words.")
    events: dict[str, FurtherEvent] = Field(description="By event, `1` for Top-1.")
    confidence: dict[str, Any] | None = Field(None, description="Histogram of the largest softmax.")
    entropy: dict[str, Any] | None = Field(None, description="Histogram, if entropy was recorded.")
    above_confidence: list[dict[str, Any]] | None = Field(
        None, description="Count and share of both sets above each confidence."
    )
    by_confidence: list[dict[str, Any]] | None = Field(
        None, description="Accuracy above each confidence; null without labels."
    )


class Summary(BaseModel):
    """Whether the calibration is fit for automatic use."""

    event: str = Field(description="The event that it is about, `1` for Top-1.")
    status: Status = Field(
        description="`fit`: an error rate passed its test, and the evaluation set does not "
        "contradict it; `disproved`: it does; `warned`: a finding is a warning; `shifted`: a "
        "further set disproves it."
    )
    headline: str = Field(description="The decision in words.")
    sentences: list[str] = Field(description="Other error rates, calibration, and shift.")


class ExportReport(BaseModel):
    """The calibrated model as one file, from `/calibrations/{id}/model.onnx`."""

    sha256: str = Field(description="Digest of the file.")
    size: int = Field(description="Size in bytes.")
    created_at: datetime = Field(description="Time of the export, in UTC.")
    parity: Parity = Field(description="Comparison with the service.")


class Report(BaseModel):
    """All results of a calibration and their origin."""

    calibration: dict[str, Any] = Field(description="Its id, name, version and times.")
    summary: Summary = Field(description="Whether it is fit for automatic use, and why.")
    events: dict[str, EventReport] = Field(description="By k, `1` for Top-1.")
    model_scores: dict[str, Any] = Field(description="Scores of the model's own softmax, by set.")
    operating_point: dict[str, Any] | None = Field(
        None,
        description="The active one: name, threshold, its choice and consequences, author, "
        "reason, time; null without one.",
    )
    earlier_operating_point: dict[str, Any] | None = Field(
        None,
        description="Without an active one: that of the newest earlier version of the name with "
        "one: version, name, its choice, author; null if there is none.",
    )
    export: ExportReport | None = Field(
        None, description="The exported file; null until the first request for it."
    )
    evaluations: list[FurtherSet] = Field(description="Further sets, oldest first.")
    not_evaluated: list[str] = Field(
        [], description="Labelled further sets that only other versions of the name have."
    )
    warnings: list[str] = Field(description="Warnings in sentences.")
    findings: list[Finding] = Field(description="Likely problems.")
    provenance: dict[str, Any] = Field(description="Digests, counts, configuration and versions.")


class Comparisons(BaseModel):
    """Several reports, and each calibration compared with the first."""

    calibrations: list[Report] = Field(description="Reports in the requested order.")
    comparisons: list[dict[str, Any]] = Field(
        description="How each compares with the first: the set, the scores on it, differences by "
        "event, and sentences."
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
@in_documents_lane
def get_report(
    request: Request,
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    calibration: Annotated[
        list[str],
        Query(
            min_length=1,
            description="An id, a name, or `name@version`; several are compared.",
        ),
    ],
    services: ServicesDep,
    report_format: Annotated[
        Literal["json", "csv", "markdown", "model-card", "html"] | None,
        Query(
            alias="format",
            description="Instead of the Accept header. `html`: the page as one file; "
            "`model-card`: Markdown for publishing a model.",
        ),
    ] = None,
) -> Response:
    """Return scores, bins, baselines and provenance as JSON, CSV, Markdown or HTML."""
    chosen = report_format or chosen_format(request.headers.get("accept"), MEDIA_TYPES)
    if len(calibration) > 1:
        if chosen != "json":
            raise InvalidInput.at("format", "several calibrations can only be compared as JSON")
        return LargeJSONResponse(compare_calibrations(workspace, tenant_id, calibration))
    report = collect_full_report(workspace, tenant_id, calibration[0])
    response = services.saved_report(report) if chosen == "html" else _formatted(report, chosen)
    response.headers["Vary"] = "Accept"
    return response


def _formatted(report: dict[str, Any], chosen: str) -> Response:
    if chosen not in TEXTS:
        return LargeJSONResponse(report)
    media_type = MEDIA_TYPES.get(chosen, MEDIA_TYPES["markdown"])
    return Response(TEXTS[chosen](report), media_type=media_type)
