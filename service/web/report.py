"""``/report`` for people: what was learned of a calibration, the decision first."""

from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from service.errors import InvalidInput
from service.operations.report import collect_report
from service.web.asker import charts_of, tenant_of, workspace_of
from service.web.calibration_page import calibration_page
from service.web.charts.drawn import draw_charts
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
    """Show the report of a calibration."""
    named = request.query_params.getlist("calibration")
    if len(named) != 1:
        raise InvalidInput.at("calibration", "expected one: an id, a name or name@version")
    found = await run_in_threadpool(
        collect_report, workspace_of(request), tenant_of(request), named[0]
    )
    about = found["calibration"]
    address = f"/pages/calibrations/{about['id']}/charts"
    chart = await run_in_threadpool(draw_charts, charts_of(request), found, address=address)
    content = report_content(found, chart)
    return calibration_page(request, "report.html", "report", about, saves=_saves(about), **content)


def _saves(about: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return what each form is called, where it is, and how its file is to be called."""
    stem = f"{about['name']}-{about['version']}"
    return [
        (label, f"/report?calibration={about['id']}&format={form}", f"{stem}{ending}")
        for label, form, ending in SAVES
    ]


ROUTES = (SharedRoute("/report", report),)
