"""``/report`` for people: what was learned of a calibration, the decision first."""

import hashlib
import json
import uuid
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

import models
from service.calibrations.manage import list_calibrations
from service.errors import InvalidInput, NotFound, Overloaded
from service.reports.charts.drawing import Renderer
from service.reports.charts.figure import Figure
from service.reports.charts.palette import Theme, painted
from service.reports.charts.registry import RenderedFigures, figures_of, render_figures
from service.reports.comparison import MOST_COMPARED
from service.reports.located import Located
from service.reports.report import collect_report
from service.web.compare import compare
from service.web.page import TEMPLATES, calibration_page
from service.web.page_route import PageRoute, SharedRoute, charts_of, tenant_of, workspace_of
from service.web.static_files import FOLDER
from service.workspace import Workspace

# The sentence is about answers that were said to be as sure as this, or as near as there are any.
SAID = 0.95
FEWEST = 20
FEW_CLASSES = 5


def report_content(report: Mapping[str, Any], chart: RenderedFigures) -> dict[str, Any]:
    """Return what the template names.

    Parameters
    ----------
    report : mapping
        As ``GET /report`` gives it.
    chart : RenderedFigures
        Its figures.
    """
    shown = Located(report)
    return {
        "report": report,
        "shown": shown,
        "chart": chart,
        "events": [_event(k, event, shown["events"][k]) for k, event in report["events"].items()],
        "fewest": _fewest(report["provenance"]),
        "config": json.dumps(report["provenance"]["config"], indent=2, ensure_ascii=False),
    }


def _event(k: str, event: Mapping[str, Any], at: Located) -> dict[str, Any]:
    """Return what the section of an event shows."""
    served = event["served"]
    table, shown = event["measures"][served], at["measures"][served]
    known = table.get("reliability")
    said = None if known is None else _said(known["after"])
    return {
        "k": k,
        "at": at,
        "served": served,
        "table": shown,
        "verdict": event["verdict"],
        "held_out": None if known is None else known["held_out"],
        "said": None if said is None else shown["reliability"]["after"][said],
        "widest": _widest(table["bins"]),
    }


def _said(rows: Sequence[Mapping[str, Any]]) -> int | None:
    """Return which row of the reliability tells of about so sure answers."""
    enough = [index for index, row in enumerate(rows) if row["count"] >= FEWEST]

    def far_and_few(index: int) -> tuple[float, int]:
        # Alike to the percent: of those, the one that most is known of.
        return round(abs(rows[index]["said"] - SAID), 2), -rows[index]["count"]

    return min(enough, key=far_and_few, default=None)


def _fewest(provenance: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the classes of which there are the fewest samples, a few of them."""
    counts = provenance["data"].get("class_counts") or []
    names = provenance["config"]["classes"]
    order = sorted(range(len(counts)), key=lambda index: counts[index])[:FEW_CLASSES]
    return [{"index": index, "name": names[index]} for index in order]


def _widest(bins: Sequence[Mapping[str, Any]]) -> int | None:
    widths = [found["interval"][1] - found["interval"][0] for found in bins]
    return max(range(len(widths)), key=widths.__getitem__, default=None)


SHEETS = ("pages.css", "charts.css")


async def saved_report(charts: Renderer, report: Mapping[str, Any]) -> Response:
    """Return the page of a report as one file that loads nothing."""
    content = report_content(report, await charts.in_thread(render_figures, charts, report))
    about = report["calibration"]
    text = TEMPLATES.get_template("saved_report.html").render(
        content | {"about": about, "style": style(), "security": policy()}
    )
    return HTMLResponse(
        text,
        headers={
            # What stands in the file itself cannot say where it may be framed.
            "Content-Security-Policy": f"{policy()}; frame-ancestors 'none'",
            "Content-Disposition": f'inline; filename="{about["name"]}-{about["version"]}.html"',
        },
    )


@cache
def style() -> Markup:
    """Return the style sheets of the page, as one."""
    return Markup("\n".join((FOLDER / name).read_text(encoding="utf-8") for name in SHEETS))  # noqa: S704 -- our own files


@cache
def policy() -> str:
    """Return what a browser may do with the file: apply this one style sheet, and load nothing."""
    digest = b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


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
    charts = charts_of(request)
    chart = await charts.in_thread(render_figures, charts, found, address=address)
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


async def chart_file(request: Request) -> Response:
    """Send a figure; ``theme=dark`` for dark grounds."""
    named = request.path_params
    key, _, form = named["key"].rpartition(".")
    figure = await run_in_threadpool(
        _figure,
        workspace_of(request),
        tenant_of(request),
        named["calibration_id"],
        (named["chart"], key),
    )
    if figure is None or form != "svg":
        raise NotFound("This report has no such figure.")
    theme: Theme = "dark" if request.query_params.get("theme") == "dark" else "light"
    (picture,) = await charts_of(request).in_thread(charts_of(request).draw, [figure])
    if picture is None:
        raise Overloaded("The figure could not be drawn; try again.")
    name = f"{figure.chart}-{figure.key}.svg"
    return Response(
        painted(picture, theme),
        media_type="image/svg+xml",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _figure(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str, wanted: tuple[str, str]
) -> Figure | None:
    report: dict[str, Any] = collect_report(workspace, tenant_id, reference)
    return next((f for f in figures_of(report) if (f.chart, f.key) == wanted), None)


CHART_FILE_ROUTES = (
    PageRoute("/pages/calibrations/{calibration_id}/charts/{chart}/{key}", chart_file),
)
