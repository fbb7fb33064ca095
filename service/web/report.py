"""``/report`` as a page: the decision first, then its reasons."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from typing import Any

from markupsafe import Markup
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

import models
from howsure.pictures.palette import Theme, paint
from howsure.remedies import remedy_of
from howsure.report.event import Event
from howsure.report.located import Located
from howsure.report.measure import Learned
from howsure.report.report import About, ActivePoint, Provenance, Report
from howsure.report.words.learned import (
    classes_sentence,
    is_exact_test,
    learned_sentence,
    ranked_classes,
)
from howsure.report.words.summary import active_point, labels_advice
from howsure.report.words.verdict import chance_in_words
from service.calibrations.manage import list_calibrations
from service.errors import InvalidInput, NotFound
from service.reports.charts.registry import RenderedFigures, figures_of, render_figures
from service.reports.comparison.compare import MOST_COMPARED, compare_calibrations
from service.reports.comparison.comparisons import Comparisons
from service.reports.confusion import collect_full_report
from service.runner.messages.dataset import PAIRS
from service.storage.operating_points import FIRST
from service.web.compare import compare
from service.web.page import calibration_page, render
from service.web.page_route import subject_of, tenant_of, workspace_of
from service.web.static_files import FOLDER

FEW_CLASSES = 5
MOST_LEARNED = 20


def report_content(report: Report, chart: RenderedFigures) -> dict[str, Any]:
    """Return the context of the template."""
    shown = Located(report)
    findings = sorted(report.findings, key=lambda found: found.level != "warning")
    provenance = report.provenance
    return {
        "report": report,
        "shown": shown,
        "chart": chart,
        "findings": [
            (found, remedy_of(vars(found), asdict(provenance), report.reference))
            for found in findings
        ],
        "active_point": active_point(report, FIRST),
        "events": [
            _event(k, event, shown["events"][k], provenance) for k, event in report.events.items()
        ],
        "fewest": _fewest(provenance),
        "config": json.dumps(provenance.config, indent=2, ensure_ascii=False),
        "warnings": _warnings(report),
        "further_rates": lambda k: _tested_rates(report, k),
        "unpromised_point": _unpromised_point(report.operating_point),
    }


def _event(k: str, event: Event, at: Located, provenance: Provenance) -> dict[str, Any]:
    """Return the context of the section of an event."""
    served, table = event.served, event.measures[event.served]
    return {
        "k": k,
        "at": at,
        "served": served,
        "table": at["measures"][served],
        "assurance": event.assurance,
        "is_approximate": not is_exact_test(event.assurance, provenance.data.get("design")),
        "chance": chance_in_words(table),
        "missing": labels_advice(table.selective, event.accuracy),
        "learned": _learned(table.learned, provenance.config.get("classes") or []),
    }


def _tested_rates(report: Report, k: str) -> list[float]:
    """Return the error rates with a threshold, in the order of further sets.

    They are the requested ones and, last, that of the active operating point.
    """
    event = report.events[k]
    selective = event.measures[event.served].selective
    rates = [one.target.max_risk for one in selective if one.threshold is not None]
    of_point = [
        one.target["max_risk"]
        for further in report.evaluations
        if k in further.events
        for one in further.events[k].accepted
        if one.operating_point is not None
    ]
    return [*rates, *of_point[:1]]


def _unpromised_point(point: ActivePoint | None) -> str | None:
    """Return the name of an active operating point that was not chosen by an error rate."""
    if point is None or "max_risk" in point.chosen_by:
        return None
    return point.name


def _learned(learned: Learned | None, names: Sequence[str]) -> dict[str, Any] | None:
    """Return the context of what the learned measure learned; None for other measures."""
    if learned is None:
        return None
    classes = ranked_classes(learned)
    return {
        "sentence": learned_sentence(learned),
        "classes": [{"index": i, "name": names[i]} for i in classes[:MOST_LEARNED]],
        "n_more": max(len(classes) - MOST_LEARNED, 0),
        "without": "" if classes else classes_sentence(learned, names),
    }


def _warnings(report: Report) -> list[str]:
    """Return the warnings without the verdicts, which the page shows elsewhere."""
    verdicts = [event.verdict for event in report.events.values()]
    shown = {verdict.sentence for verdict in verdicts if verdict is not None}
    return [text for text in report.warnings if text not in shown]


def _fewest(provenance: Provenance) -> list[dict[str, Any]]:
    """Return the few classes with the fewest samples."""
    if provenance.data.get("kind") == PAIRS:
        return []
    counts = provenance.data.get("class_counts") or []
    names = provenance.config["classes"]
    order = sorted(range(len(counts)), key=lambda index: counts[index])[:FEW_CLASSES]
    return [{"index": index, "name": names[index]} for index in order]


SHEETS = ("pages.css", "charts.css")


def saved_report(report: Report) -> Response:
    """Return the page of a report as one file that loads nothing."""
    about, content = report.calibration, report_content(report, render_figures(report))
    own = {"about": about, "style": style(), "security": policy()}
    return HTMLResponse(
        render("saved_report.html", content | own),
        headers={
            # A policy inside the file cannot forbid framing.
            "Content-Security-Policy": f"{policy()}; frame-ancestors 'none'",
            "Content-Disposition": f'inline; filename="{about.name}-{about.version}.html"',
        },
    )


@cache
def style() -> Markup:
    """Return the style sheets of the page, as one."""
    return Markup("\n".join((FOLDER / name).read_text(encoding="utf-8") for name in SHEETS))  # noqa: S704 -- our own files


@cache
def policy() -> str:
    """Return a policy that allows only this style sheet and loads nothing."""
    digest = b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


# Label, `format` of `GET /report`, and ending of the file name.
SAVES = (
    ("HTML", "html", ".html"),
    ("Markdown", "markdown", ".md"),
    ("model card", "model-card", "-card.md"),
    ("CSV", "csv", ".csv"),
    ("JSON", "json", ".json"),
)


def report(request: Request) -> Response:
    """Show the report of a calibration, or compare several."""
    named = request.query_params.getlist("calibration")
    if not named:
        raise InvalidInput.at("calibration", "choose one to read, or several to compare")
    if len(named) > 1:
        return compare(request, named)
    found = collect_full_report(workspace_of(request), tenant_of(request), named[0])
    about = found.calibration
    address = f"/pages/calibrations/{about.id}/charts"
    chart = render_figures(found, address=address)
    return calibration_page(
        request,
        "report.html",
        "report",
        about,
        saves=_saves(about),
        versions=_other_versions(request, about),
        **report_content(found, chart),
    )


def _other_versions(request: Request, about: About) -> Sequence[models.Calibration]:
    """Return the other versions that it can be compared with, newest first."""
    rows, _ = list_calibrations(
        workspace_of(request),
        tenant_of(request),
        limit=MOST_COMPARED,
        cursor=None,
        name=about.name,
        status="succeeded",
    )
    return [row for row in rows if str(row.id) != about.id][: MOST_COMPARED - 1]


def _saves(about: About) -> list[tuple[str, str, str]]:
    """Return the label, address and file name of each format."""
    stem = f"{about.name}-{about.version}"
    return [
        (label, f"/report?calibration={about.id}&format={form}", f"{stem}{ending}")
        for label, form, ending in SAVES
    ]


def chart_file(request: Request) -> Response:
    """Send a figure as SVG; ``theme=dark`` for dark backgrounds.

    With ``calibration`` it is of the comparison with these.
    """
    key, _, form = request.path_params["key"].rpartition(".")
    wanted = (request.path_params["chart"], key)
    workspace, tenant_id, first = subject_of(request)
    others = request.query_params.getlist("calibration")
    report: Report | Comparisons = (
        compare_calibrations(workspace, tenant_id, [first, *others])
        if others
        else collect_full_report(workspace, tenant_id, first)
    )
    figure = next((f for f in figures_of(report, wanted[:1]) if (f.chart, f.key) == wanted), None)
    if figure is None or form != "svg":
        raise NotFound("This report has no such figure.")
    theme: Theme = "dark" if request.query_params.get("theme") == "dark" else "light"
    return Response(
        paint(figure.svg(has_heading=True), theme),
        media_type="image/svg+xml",
        headers={"Content-Disposition": f'attachment; filename="{figure.name}.svg"'},
    )
