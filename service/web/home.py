"""``/``: the calibrations by name, the running jobs and the upload form."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from howsure.preprocessing import PRESETS
from howsure.report.findings import documented_rows
from howsure.report.report import Status
from howsure.report.words.summary import earlier_point
from service.access.api_keys import WRITE
from service.calibrations.manage import get_calibration, jobs_under_way, overview
from service.errors import NotFound
from service.reports.fitness import fitness_of
from service.reports.report import earlier_operating_point
from service.storage.operating_points import OperatingPointRepository
from service.storage.overview import NameRow
from service.web.page import page
from service.web.page_route import (
    may,
    origin_of,
    subject_of,
    tenant_of,
    workspace_of,
)

MOST_OF_SEARCH = 100
# The state of a row in a word, and its class.
WORDS: Mapping[Status, tuple[str, str]] = {
    "fit": ("fit", "succeeded"),
    "unfit": ("not fit", "unfit"),
    "warned": ("do not use", "failed"),
    "disproved": ("not fit", "failed"),
    "shifted": ("not for all data", "failed"),
    "unknown": ("unknown", ""),
}


def home(request: Request) -> Response:
    """Show the home page."""
    return home_page(request)


def home_page(
    request: Request, *, status: int = 200, problem: dict[str, Any] | None = None
) -> Response:
    """Render the home page; ``problem`` is the reason why an upload was refused."""
    search = request.query_params.get("q", "").strip()[:MOST_OF_SEARCH]
    found = overview(workspace_of(request), tenant_of(request), search=search)
    ids = [row.id for row in found.names if row.status == "succeeded"]
    return page(
        request,
        "home.html",
        status=status,
        found=found,
        fitness=fitness_of(workspace_of(request), tenant_of(request), ids),
        words=WORDS,
        ended=_ended_points(request, found.names),
        search=search,
        jobs=found.jobs,
        made=_made(request),
        may_write=may(request, WRITE),
        problem=problem,
        presets=list(PRESETS),
        origin=origin_of(request),
    )


def _ended_points(request: Request, rows: Sequence[NameRow]) -> dict[str, dict[str, Any]]:
    """Return the operating point that a name no longer follows, its version, and a sentence."""
    names = {row.name: row.version for row in rows}
    with workspace_of(request).database.reading(tenant_of(request)) as session:
        points = OperatingPointRepository(session, tenant_of(request))
        found = points.of_earlier_versions(names)
    return {
        name: {
            "name": point.name,
            "version": version,
            "sentence": earlier_point(name, earlier_operating_point(version, point)),
        }
        for name, (version, point) in found.items()
    }


def _made(request: Request) -> dict[str, Any] | None:
    """Return the calibration that was just uploaded, if the address names one."""
    reference = request.query_params.get("made")
    if reference is None:
        return None
    try:
        row = get_calibration(workspace_of(request), tenant_of(request), reference)
    except NotFound:
        return None
    findings = documented_rows(row.findings)
    named = {"id": str(row.id), "name": row.name, "version": row.version, "status": row.status}
    return named | {"findings": findings, "warnings": row.warnings, "error": row.error}


def deletion(request: Request) -> Response:
    """Ask whether to delete a calibration."""
    workspace, tenant_id, reference = subject_of(request)
    row = get_calibration(workspace, tenant_id, reference)
    return page(request, "delete.html", row=row, may_write=may(request, WRITE))


def jobs(request: Request) -> Response:
    """Show the running jobs; once none is left, have the browser reload the page."""
    found = jobs_under_way(workspace_of(request), tenant_of(request))
    response = page(request, "jobs.html", whole=False, jobs=found, may_write=may(request, WRITE))
    if not found:
        response.headers["HX-Refresh"] = "true"
    return response
