"""``/report`` for people: what was learned of a calibration, the decision first."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

import models
from service.errors import InvalidInput
from service.operations.compare import MOST_COMPARED
from service.operations.manage_calibrations import list_calibrations
from service.operations.report import collect_report
from service.web.asker import charts_of, tenant_of, workspace_of
from service.web.calibration_page import calibration_page
from service.web.charts.drawn import draw_charts
from service.web.compare import compare
from service.web.page_route import SharedRoute
from service.web.report_content import report_content

# What it is called, the `format` that `GET /report` knows it by, and how the file's name ends.
SAVES = (
    ("HTML", "html", ".html"),
    ("Markdown", "markdown", ".md"),
    ("model card", "model-card", "-card.md"),
    ("CSV", "csv", ".csv"),
    ("JSON", "json", ".json"),
)


async def report(request: Request) -> Response:
    """Show the report of a calibration, or several side by side."""
    named = request.query_params.getlist("calibration")
    if not named:
        raise InvalidInput.at("calibration", "choose one to read, or several to compare")
    if len(named) > 1:
        return await compare(request, named)
    await run_in_threadpool(charts_of(request).warm)  # starts while the report is collected
    found = await run_in_threadpool(
        collect_report, workspace_of(request), tenant_of(request), named[0]
    )
    about = found["calibration"]
    address = f"/pages/calibrations/{about['id']}/charts"
    chart = await run_in_threadpool(draw_charts, charts_of(request), found, address=address)
    content = report_content(found, chart)
    versions = await run_in_threadpool(_other_versions, request, about)
    return calibration_page(
        request,
        "report.html",
        "report",
        about,
        saves=_saves(about),
        versions=versions,
        **content,
    )


def _other_versions(request: Request, about: Mapping[str, Any]) -> Sequence[models.Calibration]:
    """Return those of its name that it can be compared with, the newest first."""
    rows, _ = list_calibrations(
        workspace_of(request),
        tenant_of(request),
        limit=MOST_COMPARED,
        cursor=None,
        name=about["name"],
        status="succeeded",
    )
    return [row for row in rows if str(row.id) != about["id"]][: MOST_COMPARED - 1]


def _saves(about: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return what each form is called, where it is, and how its file is to be called."""
    stem = f"{about['name']}-{about['version']}"
    return [
        (label, f"/report?calibration={about['id']}&format={form}", f"{stem}{ending}")
        for label, form, ending in SAVES
    ]


ROUTES = (SharedRoute("/report", report),)
