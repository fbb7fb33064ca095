"""Where people choose a threshold: what each would do, and which one is in force."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from service.reports.charts.drawing import Renderer, add_marker
from service.reports.charts.figure import figure_html
from service.reports.charts.thresholds import risk_coverage_figures
from service.reports.located import Located
from service.reports.operating_points import MAX_AUTHOR_CHARACTERS, MAX_REASON_CHARACTERS, NAME
from service.reports.report import collect_report
from service.web.api_calls import Answer, handed_on
from service.web.page import calibration_page, page
from service.web.page_route import PageRoute, charts_of, may_write, tenant_of, workspace_of

# What each control is called in the API; those of them that people give in percent.
CONTROLS: Mapping[str, str] = {"risk": "max_risk", "coverage": "coverage", "threshold": "threshold"}
PERCENT = ("risk", "coverage")
MOST_OF_UNIT = 40


@dataclass(frozen=True)
class Chosen:
    """The fields of the form, as they were typed.

    Attributes
    ----------
    by : str
        Which of `CONTROLS`.
    value : str
        Of that one; error rates and shares in percent.
    failing : str
        Of how many calibration sets the certificate may fail, in percent.
    volume, unit : str
        How many there are a day, and what of.
    """

    by: str
    value: str
    failing: str = "5"
    volume: str = "10000"
    unit: str = "answers"

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> "Chosen | None":
        """Read a form; None if nothing is chosen in it."""
        by = fields.get("by", "")
        if by not in CONTROLS:
            return None
        unit = " ".join(fields.get("unit", "").split())[:MOST_OF_UNIT]
        return cls(
            by,
            fields.get(by, "").strip(),
            fields.get("failing", "").strip() or cls.failing,
            fields.get("volume", "").strip() or cls.volume,
            unit or cls.unit,
        )

    @classmethod
    def again(cls, chosen_by: Mapping[str, float]) -> "Chosen":
        """Return what chooses as an operating point was chosen."""
        by = next(name for name, key in CONTROLS.items() if key in chosen_by)
        return cls(
            by,
            typed(by, chosen_by[CONTROLS[by]]),
            percent_of(chosen_by["delta"]) if "delta" in chosen_by else cls.failing,
        )

    def fields(self) -> dict[str, str]:
        """Return the form that says this."""
        return {
            "by": self.by,
            self.by: self.value,
            "failing": self.failing,
            "volume": self.volume,
            "unit": self.unit,
        }

    def choice(self) -> dict[str, str]:
        """Return what the API is asked for; what is no number it refuses."""
        value = share_of(self.value) if self.by in PERCENT else self.value
        return {CONTROLS[self.by]: value, "delta": share_of(self.failing)}


def linked(chosen: Chosen, preview: Mapping[str, Any]) -> dict[str, str]:
    """Return where the other controls stand for what was chosen, short enough for their fields."""
    seen = preview["consequences"] or {}
    found = {
        "risk": preview["max_risk"],
        "coverage": seen.get("coverage"),
        "threshold": preview["threshold"],
    }
    return {
        name: "" if value is None else f"{100 * value if name in PERCENT else value:.4g}"
        for name, value in found.items()
        if name != chosen.by
    }


def typed(name: str, value: float) -> str:
    """Return a number of the API as it is given in a control."""
    return percent_of(value) if name in PERCENT else f"{value:.9g}"  # all of a float32


def percent_of(share: float) -> str:
    """Return a share in percent, all its digits."""
    return f"{(Decimal(repr(share)) * 100).normalize():f}"


def share_of(percent: str) -> str:
    """Return what was typed in percent as a share, exactly; as it is if it is no number."""
    try:
        return str(Decimal(percent) / 100)
    except InvalidOperation:
        return percent


_OK, _NOT_FOUND, _CONFLICT = 200, 404, 409


async def outcome(request: Request) -> Response:
    """Show what follows from a choice: a part of the page, for its sliders.

    What is wrong with a choice is said in its place; where there is nothing to choose from, that is
    a refusal.
    """
    reference = quote(request.path_params["calibration_id"], safe="@")
    chosen = Chosen.of(request.query_params) or Chosen("threshold", "0")
    found = await outcome_of(request, f"/calibrations/{reference}", chosen)
    return page(
        request,
        "outcome.html",
        whole=False,
        status=_NOT_FOUND if found.status == _NOT_FOUND else _OK,
        outcome=found,
        may_write=may_write(request),
    )


@dataclass(frozen=True)
class Outcome:
    """What follows from a choice.

    Attributes
    ----------
    address : str
        Of the calibration, in the API.
    chosen : Chosen
    answer : Answer
        What the API said to ``source``.
    source : str
    """

    address: str
    chosen: Chosen
    answer: Answer
    source: str

    @property
    def status(self) -> int:
        """Whether a choice could be looked at."""
        return self.answer.status

    @property
    def problem(self) -> Any:  # noqa: ANN401 - what the API says
        """What is wrong with the choice, if something is."""
        return None if self.answer.is_done else self.answer.body

    @property
    def is_possible(self) -> bool:
        """Whether something else can be chosen: not where there is nothing to choose from."""
        return self.status != _CONFLICT

    @property
    def preview(self) -> Mapping[str, Any]:
        """What follows; nothing if something is wrong."""
        return self.answer.body if self.answer.is_done else {}

    @property
    def shown(self) -> Located:
        """Its numbers."""
        return Located(self.preview)

    @property
    def linked(self) -> dict[str, str]:
        """Where the other controls are then."""
        return linked(self.chosen, self.preview) if self.answer.is_done else {}

    @property
    def place(self) -> tuple[float, float] | None:
        """Where it is on the curve: the share that is accepted, and the errors among it."""
        seen = self.preview.get("consequences")
        return None if seen is None or seen["risk"] is None else (seen["coverage"], seen["risk"])

    @property
    def page(self) -> str:
        """The address of the page that shows this."""
        return self._page_of(self.chosen)

    @property
    def certified_page(self) -> str | None:
        """The address of the page that accepts as much, certified, where that is another."""
        max_risk = self.preview.get("max_risk")
        if max_risk is None or self.chosen.by == "risk":
            return None
        of = self.chosen
        return self._page_of(
            Chosen("risk", typed("risk", max_risk), of.failing, of.volume, of.unit)
        )

    def _page_of(self, chosen: Chosen) -> str:
        return f"/pages{self.address}/operating-point?{urlencode(chosen.fields())}"


async def outcome_of(request: Request, address: str, chosen: Chosen) -> Outcome:
    """Ask the API what follows."""
    asked = chosen.choice() | {"volume": chosen.volume}
    path = f"{address}/operating-points/preview"
    return Outcome(
        address, chosen, await asked_of(request, path, asked), f"{path}?{urlencode(asked)}"
    )


async def asked_of(request: Request, path: str, query: Mapping[str, str] | None = None) -> Answer:
    """Ask the API, whatever this request is."""
    reading = Request(dict(request.scope) | {"method": "GET"}, request.receive)
    return await handed_on(reading, path, query=urlencode(query or {}))


ROUTES = (PageRoute("/pages/calibrations/{calibration_id}/operating-point/outcome", outcome),)


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
        chart=await charts_of(request).in_thread(_chart, charts_of(request), report, found),
        history=Located(history)["operating_points"],
        in_force=in_force,
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
    figure = next((f for f in risk_coverage_figures(report) if f.key == "1"), None)
    if figure is None:
        return Markup()
    (picture,) = renderer.draw([figure])
    if picture is not None:
        picture = add_marker(picture, most=figure.parameters["most"], at=outcome.place)
    return figure_html(figure, picture, f"/pages{outcome.address}/charts")


PAGE_ROUTES = (PageRoute("/pages/calibrations/{calibration_id}/operating-point", operating_point),)
