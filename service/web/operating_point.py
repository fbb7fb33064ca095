"""Where people choose a threshold: what each would do, and which one is in force."""

import math
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from service.operations.operating_points import MAX_AUTHOR_CHARACTERS, MAX_REASON_CHARACTERS, NAME
from service.operations.report import collect_report
from service.web.asker import charts_of, may_write, tenant_of, workspace_of
from service.web.calibration_page import calibration_page
from service.web.charts import CHARTS
from service.web.charts.html import figure_html
from service.web.charts.marker import with_marker
from service.web.charts.renderer import Renderer
from service.web.charts.risk_coverage import NAME as CURVE
from service.web.chosen import MOST_OF_UNIT, Chosen, typed
from service.web.handed_on import Answer
from service.web.outcome import Outcome, asked_of, outcome_of
from service.web.page import page
from service.web.page_route import PageRoute
from service.web.pointed import Pointed

MOST = {"author": MAX_AUTHOR_CHARACTERS, "reason": MAX_REASON_CHARACTERS, "unit": MOST_OF_UNIT}
STEPS = 1000
Range = tuple[float, float, float]
Row = Mapping[str, Any]


async def operating_point(request: Request) -> Response:
    """Show what is chosen in the address, or what is in force."""
    return await operating_point_page(request, Chosen.of(request.query_params))


async def operating_point_page(
    request: Request,
    chosen: Chosen | None,
    *,
    refused: Answer | None = None,
    given: Mapping[str, str] | None = None,
) -> Response:
    """Render the page, with what was wrong with a form if one was sent, and what was in it."""
    report = await run_in_threadpool(
        collect_report,
        workspace_of(request),
        tenant_of(request),
        request.path_params["calibration_id"],
    )
    about = report["calibration"]
    address = f"/calibrations/{about['id']}"
    listed = await asked_of(request, f"{address}/operating-points")
    if not listed.is_done:
        return page(request, "problem.html", status=listed.status, problem=listed.body)
    history = listed.body
    in_force = [at for at, point in enumerate(history["operating_points"]) if point["in_force"]]
    event = report["events"].get("1")
    table = {} if event is None else event["measures"].get(event["served"], {})
    if chosen is None:
        chosen = _first(table, [history["operating_points"][at] for at in in_force])
    found = await outcome_of(request, address, chosen)
    everything = Chosen("coverage", "100", chosen.failing).choice()
    whole = await asked_of(request, f"{address}/operating-points/preview", everything)
    return calibration_page(
        request,
        "operating_point.html",
        "operating-point",
        about,
        status=found.status if refused is None else refused.status,
        outcome=found,
        served=None if event is None else event["served"],
        ranges=_ranges(table, whole.body["max_risk"] if whole.is_done else None),
        chart=await run_in_threadpool(_chart, charts_of(request), report, found),
        history=history["operating_points"],
        in_force=in_force,
        decided=Pointed(history),
        refused=None if refused is None else refused.body,
        given=dict.fromkeys(("form", "name", "author", "reason"), "") | dict(given or {}),
        name_pattern=NAME.pattern.replace("-]", r"\-]"),  # as browsers read patterns
        most=MOST,
        may_write=may_write(request),
    )


def _first(table: Row, in_force: list[Row]) -> Chosen:
    """Return what is chosen by who has not chosen yet: what is in force, or the config's risk."""
    if in_force:
        return Chosen.again(in_force[0]["chosen_by"])
    if _curve(table) is None:
        # An imported one: it has no samples, and a threshold is all that can be chosen.
        edges = [found["upper"] for found in table.get("bins", []) if found["upper"] is not None]
        return Chosen("threshold", typed("threshold", edges[0] if edges else 0.0))
    if table["selective"]:
        return Chosen.again(table["selective"][0]["target"])
    return Chosen("coverage", "80")


def _curve(table: Row) -> Row | None:
    found: Row | None = (table.get("curves") or {}).get("risk_coverage")
    return found


def _ranges(table: Row, max_risk: float | None) -> dict[str, Range]:
    """Return the least, the most and the step of each slider: rates and shares in percent.

    Beyond ``max_risk`` everything is accepted.
    """
    curve = _curve(table)
    if curve is None:
        return {}
    most = 100.0 if max_risk is None else 100.0 * max_risk
    step = min(10.0 ** math.floor(math.log10(most / 50)), 0.1)
    least, greatest = curve["threshold"][0], curve["threshold"][-1]
    return {
        "risk": (step, round(math.ceil(round(most / step, 6)) * step, 6), step),
        "coverage": (0.1, 100.0, 0.1),
        "threshold": (least, greatest, ((greatest - least) or 1.0) / STEPS),
    }


def _chart(renderer: Renderer, report: Row, outcome: Outcome) -> Markup:
    """Return the curve with a mark at what is chosen; nothing where no curve was kept."""
    figure = next((f for f in CHARTS[CURVE].figures(report) if f.key == "1"), None)
    if figure is None:
        return Markup()
    (picture,) = renderer.draw([figure])
    if picture is not None:
        picture = with_marker(picture, most=figure.parameters["most"], at=outcome.place)
    return figure_html(figure, picture, f"/pages{outcome.address}/charts")


ROUTES = (PageRoute("/pages/calibrations/{calibration_id}/operating-point", operating_point),)
