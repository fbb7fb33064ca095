"""``/pages/calibrations/{id}/operating-point``: choose a threshold and see its consequences."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from howsure.figures.thresholds import risk_coverage_figures
from howsure.report.located import Located
from howsure.report.measure import Measure
from howsure.report.parts import FIRST
from howsure.report.report import Report
from howsure.report.words.learned import assurance, is_exact_test
from howsure.report.words.summary import earlier_point
from howsure.statistics.measures.scale import Scale, scale_of
from service.access.api_keys import WRITE
from service.reports.charts.figure_html import figure_html
from service.reports.operating_point_routes import list_operating_points
from service.reports.operating_points import MAX_AUTHOR_CHARACTERS, MAX_REASON_CHARACTERS, NAME
from service.reports.report import collect_report
from service.web.api_calls import Answer
from service.web.operating_point.choice import CONTROLS, LABELS, MOST_OF_UNIT, Chosen, typed
from service.web.operating_point.configured_rates import abstain_without_point
from service.web.operating_point.field_errors import on_page
from service.web.operating_point.outcome import Outcome, outcome_of
from service.web.page import calibration_page
from service.web.page_route import may, subject_of

MOST = {"author": MAX_AUTHOR_CHARACTERS, "reason": MAX_REASON_CHARACTERS, "unit": MOST_OF_UNIT}
STEPS = 1000
Range = tuple[float, float, float]
Row = Mapping[str, Any]


def operating_point(request: Request) -> Response:
    """Show the choice in the address, or the active operating point."""
    return operating_point_page(request, Chosen.of(request.query_params))


def operating_point_page(
    request: Request,
    chosen: Chosen | None,
    *,
    refused: Answer | None = None,
    given: Mapping[str, str] | None = None,
) -> Response:
    """Render the page; ``refused`` is the problem of a form, and ``given`` its fields."""
    workspace, tenant_id, reference = subject_of(request)
    report = collect_report(workspace, tenant_id, reference)
    about = report.calibration
    cursor = request.query_params.get("decisions")
    decisions = partial(list_operating_points, workspace, tenant_id, about.id)
    newest = decisions().model_dump(mode="json")
    history = newest if cursor is None else decisions(cursor=cursor).model_dump(mode="json")
    active = next((p for p in newest["operating_points"] if p["in_force"]), None)
    event = report.events.get(FIRST)
    served = "" if event is None else event.served
    grounds = assurance("", FIRST, {}) if event is None else event.assurance
    table = None if event is None else event.measures[served]
    selective = None if table is None else table.selective
    scale, by = scale_of(served), request.query_params.get("by", "")
    if chosen is None:
        chosen = _first(table, scale, active)
    found = outcome_of(request, about.id, chosen)
    everything = Chosen("coverage", "100", chosen.failing)
    whole = outcome_of(request, about.id, everything)
    return calibration_page(
        request,
        "operating_point.html",
        "operating-point",
        about,
        status=found.status if refused is None else refused.status,
        outcome=found,
        served=served,
        scale=scale,
        assurance=grounds.capitalize(),
        ranges=_ranges(table, scale, whole.preview.get("max_risk")),
        chart=_chart(report, found),
        history=Located(history)["operating_points"],
        older=history["next_cursor"],
        cursor=cursor,
        point=Located(newest)["operating_points"][0] if active else None,
        earlier=""
        if report.earlier_operating_point is None
        else earlier_point(about.name, report.earlier_operating_point),
        is_approximate=not is_exact_test(grounds, report.provenance.data.get("design")),
        without=abstain_without_point(selective),
        withdrawn=abstain_without_point(selective, then=True),
        labels=LABELS,
        unread=None if by in ("", *CONTROLS) else by,
        refused=None if refused is None else on_page(refused.body),
        given=dict.fromkeys(("form", "name", "author", "reason", "despite"), "")
        | dict(given or {}),
        name_pattern=NAME.pattern.replace("-]", r"\-]"),  # as browsers read patterns
        most=MOST,
        may_write=may(request, WRITE),
    )


def _first(table: Measure | None, scale: Scale, active: Row | None) -> Chosen:
    """Return the first choice: the active operating point, or the risk of the configuration."""
    if active is not None:
        return Chosen.again(active["chosen_by"])
    if table is None or table.curves.risk_coverage is None:
        # Imported tables have no samples, so only a threshold can be chosen.
        bins = [] if table is None else table.bins
        edges = [one.upper for one in bins if one.upper is not None]
        return Chosen("threshold", typed("threshold", scale.sign * edges[0] if edges else 0.0))
    if table.selective:
        return Chosen.again(asdict(table.selective[0].target))
    return Chosen("coverage", "80")


def _ranges(table: Measure | None, scale: Scale, max_risk: float | None) -> dict[str, Range]:
    """Return minimum, maximum and step of each slider; rates and shares in percent.

    Beyond ``max_risk`` everything is accepted.
    """
    curve = None if table is None else table.curves.risk_coverage
    if curve is None:
        return {}
    most = 100.0 if max_risk is None else 100.0 * max_risk
    step = min(10.0 ** math.floor(math.log10(most / 50)), 0.1)
    least, greatest = sorted(scale.of(curve.threshold[end]) or 0.0 for end in (0, -1))
    return {
        "risk": (step, round(math.ceil(round(most / step, 6)) * step, 6), step),
        "coverage": (0.1, 100.0, 0.1),
        "threshold": (least, greatest, ((greatest - least) or 1.0) / STEPS),
    }


def _chart(report: Report, outcome: Outcome) -> Markup:
    """Return the curve with a mark at the choice; empty if no curve was kept."""
    figure = next((f for f in risk_coverage_figures(report) if f.key == FIRST), None)
    if figure is None:
        return Markup()
    figure.picture.marker(outcome.place)
    return figure_html(figure, f"/pages{outcome.address}/charts")
