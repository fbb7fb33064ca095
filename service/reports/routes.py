"""``GET /report``: the scores of a calibration."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from howsure.report.report import Report
from service.errors import InvalidInput
from service.http.dependencies import ServicesDep, TenantDep, WorkspaceDep, in_documents_lane
from service.http.negotiation import chosen_format
from service.http.problems import problems
from service.json_pieces import LargeJSONResponse
from service.reports.comparison.compare import compare_calibrations
from service.reports.confusion import collect_full_report
from service.reports.csv_table import report_csv
from service.reports.markdown import model_card, report_markdown

MEDIA_TYPES = {"json": "application/json", "csv": "text/csv", "markdown": "text/markdown"}
TEXTS = {"csv": report_csv, "markdown": report_markdown, "model-card": model_card}
# Classes of reports describe themselves: see `complete_document`.
SCHEMA = {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in ("Report", "Comparisons")]}

router = APIRouter(tags=["report"])


@router.get(
    "/report",
    summary="Read the scores of a calibration, or compare several",
    responses={
        **problems(404, 406, 409, 422),
        200: {
            "content": {
                MEDIA_TYPES["json"]: {"schema": SCHEMA},
                MEDIA_TYPES["csv"]: {},
                MEDIA_TYPES["markdown"]: {},
                "text/html": {},
            }
        },
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


def _formatted(report: Report, chosen: str) -> Response:
    if chosen not in TEXTS:
        return LargeJSONResponse(report)
    media_type = MEDIA_TYPES.get(chosen, MEDIA_TYPES["markdown"])
    return Response(TEXTS[chosen](report), media_type=media_type)
