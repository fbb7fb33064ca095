"""``/pages/calibrations/{id}/operating-point``: choose a threshold and see its consequences."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import quote, urlencode

from fastapi.exceptions import RequestValidationError
from markupsafe import Markup
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from service.errors import ServiceError
from service.http.problems import problem_on_page
from service.reports.charts.drawing import Renderer, add_marker
from service.reports.charts.figure import figure_html
from service.reports.charts.thresholds import risk_coverage_figures
from service.reports.further_sets import excess
from service.reports.learned import assurance
from service.reports.located import Located
from service.reports.operating_point_routes import (
    PreviewQuery,
    list_operating_points,
    preview_operating_point,
)
from service.reports.operating_points import MAX_AUTHOR_CHARACTERS, MAX_REASON_CHARACTERS, NAME
from service.reports.report import collect_report
from service.web.api_calls import Answer
from service.web.page import calibration_page, page
from service.web.page_route import charts_of, may_write, subject_of, tenant_of, workspace_of

# Controls by their names in the API; some are given in percent.
CONTROLS: Mapping[str, str] = {"risk": "max_risk", "coverage": "coverage", "threshold": "threshold"}
PERCENT = ("risk", "coverage")
MOST_OF_UNIT = 40


@dataclass(frozen=True)
class Chosen:
    """The fields of the form, as they were typed.

    Attributes
    ----------
    by : str
        One of `CONTROLS`.
    value : str
        Its value; error rates and shares in percent.
    failing : str
        Share of calibration sets for which the error rate may be exceeded, in percent.
    volume, unit : str
        Number of answers a day, and the word for them.
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
        """Return the form that chooses an operating point again."""
        by = next(name for name, key in CONTROLS.items() if key in chosen_by)
        return cls(
            by,
            typed(by, chosen_by[CONTROLS[by]]),
            percent_of(chosen_by["delta"]) if "delta" in chosen_by else cls.failing,
        )

    def fields(self) -> dict[str, str]:
        """Return the fields of the form."""
        return {
            "by": self.by,
            self.by: self.value,
            "failing": self.failing,
            "volume": self.volume,
            "unit": self.unit,
        }

    def choice(self) -> dict[str, str]:
        """Return the parameters of the API, which refuses values that are no numbers."""
        value = share_of(self.value) if self.by in PERCENT else self.value
        return {CONTROLS[self.by]: value, "delta": share_of(self.failing)}


def typed(name: str, value: float) -> str:
    """Return a number of the API as its control shows it."""
    return percent_of(value) if name in PERCENT else f"{value:.9g}"  # all of a float32


def percent_of(share: float) -> str:
    """Return a share in percent with all its digits."""
    return f"{(Decimal(repr(share)) * 100).normalize():f}"


def share_of(percent: str) -> str:
    """Return a percentage as a share, exactly; unchanged if it is no number."""
    try:
        return str(Decimal(percent) / 100)
    except InvalidOperation:
        return percent


_OK, _NOT_FOUND, _CONFLICT = 200, 404, 409


def outcome(request: Request) -> Response:
    """Show the consequences of a choice: the part of the page that its sliders update.

    An invalid choice is explained there; a calibration without thresholds is a refusal.
    """
    chosen = Chosen.of(request.query_params) or Chosen("threshold", "0")
    reference = request.path_params["calibration_id"]
    found = outcome_of(request, reference, chosen)
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
    """The consequences of a choice.

    Attributes
    ----------
    address : str
        Of the calibration, in the API.
    source : str
        Where the API has the preview.
    chosen : Chosen
    preview : mapping
        As the API returns it; empty if there is a problem.
    status : int
        Of the preview.
    problem : mapping or None
        Why there is no preview.
    """

    address: str
    source: str
    chosen: Chosen
    preview: Mapping[str, Any]
    status: int = _OK
    problem: Mapping[str, object] | None = None

    @property
    def is_possible(self) -> bool:
        """Whether another choice may succeed; False for a calibration without thresholds."""
        return self.status != _CONFLICT

    @property
    def shown(self) -> Located:
        """The numbers of the preview."""
        return Located(self.preview)

    @property
    def linked(self) -> dict[str, str]:
        """Values of the other controls for this choice, short enough for their fields."""
        if not self.preview:
            return {}
        found = {
            "risk": self.preview["max_risk"],
            "coverage": (self.preview["consequences"] or {}).get("coverage"),
            "threshold": self.preview["threshold"],
        }
        return {
            name: "" if value is None else f"{100 * value if name in PERCENT else value:.4g}"
            for name, value in found.items()
            if name != self.chosen.by
        }

    @property
    def place(self) -> tuple[float, float] | None:
        """Coverage and risk: the place on the curve."""
        seen = self.preview.get("consequences")
        return None if seen is None or seen["risk"] is None else (seen["coverage"], seen["risk"])

    @property
    def page(self) -> str:
        """The address of the page with this choice."""
        return self._page_of(self.chosen)

    @property
    def assurance(self) -> str:
        """How the bound of a tested error rate is known."""
        return assurance(self.preview["measure"]).capitalize()

    @property
    def excess(self) -> str:
        """What to say of an error rate of the evaluation set above the chosen one."""
        return excess(self.preview["consequences"]["evaluation"], self.preview["max_risk"])

    @property
    def tested_page(self) -> str | None:
        """The address of the page with the error rate that passes the test at this coverage."""
        max_risk = self.preview.get("max_risk")
        if max_risk is None or self.chosen.by == "risk":
            return None
        return self._page_of(replace(self.chosen, by="risk", value=typed("risk", max_risk)))

    def _page_of(self, chosen: Chosen) -> str:
        return f"/pages{self.address}/operating-point?{urlencode(chosen.fields())}"


def outcome_of(request: Request, reference: str, chosen: Chosen) -> Outcome:
    """Return the consequences of a choice, as `GET .../operating-points/preview` does."""
    address = f"/calibrations/{quote(reference, safe='@')}"
    asked = chosen.choice() | {"volume": chosen.volume}
    source = f"{address}/operating-points/preview?{urlencode(asked)}"
    try:
        preview = _preview(request, reference, asked)
    except (ServiceError, RequestValidationError) as error:
        status, problem = problem_on_page(request.scope, error)
        return Outcome(address, source, chosen, {}, status, problem)
    return Outcome(address, source, chosen, preview)


def _preview(request: Request, reference: str, asked: Mapping[str, str]) -> dict[str, Any]:
    try:
        query = PreviewQuery.model_validate(asked)
    except ValidationError as error:
        # The same locations as those of the API, which takes it from the query.
        raise RequestValidationError(
            [{**found, "loc": ("query", *found["loc"])} for found in error.errors()]
        ) from error
    workspace, tenant_id = workspace_of(request), tenant_of(request)
    found = preview_operating_point(workspace, tenant_id, reference, query)
    return found.model_dump(mode="json")


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
    about = report["calibration"]
    history = list_operating_points(workspace, tenant_id, about["id"]).model_dump(mode="json")
    active = next((p for p in history["operating_points"] if p["in_force"]), None)
    event = report["events"].get("1")
    table = {} if event is None else event["measures"].get(event["served"], {})
    by = request.query_params.get("by", "")
    if chosen is None:
        chosen = _first(table, active)
    found = outcome_of(request, about["id"], chosen)
    everything = Chosen("coverage", "100", chosen.failing)
    whole = outcome_of(request, about["id"], everything)
    return calibration_page(
        request,
        "operating_point.html",
        "operating-point",
        about,
        status=found.status if refused is None else refused.status,
        outcome=found,
        served=None if event is None else event["served"],
        ranges=_ranges(table, whole.preview.get("max_risk")),
        chart=_chart(charts_of(request), report, found),
        history=Located(history)["operating_points"],
        is_active=active is not None,
        unread=None if by in ("", *CONTROLS) else by,
        refused=None if refused is None else refused.body,
        given=dict.fromkeys(("form", "name", "author", "reason", "despite"), "")
        | dict(given or {}),
        name_pattern=NAME.pattern.replace("-]", r"\-]"),  # as browsers read patterns
        most=MOST,
        may_write=may_write(request),
    )


def _first(table: Row, active: Row | None) -> Chosen:
    """Return the first choice: the active operating point, or the risk of the configuration."""
    if active is not None:
        return Chosen.again(active["chosen_by"])
    if _curve(table) is None:
        # Imported tables have no samples, so only a threshold can be chosen.
        edges = [found["upper"] for found in table.get("bins", []) if found["upper"] is not None]
        return Chosen("threshold", typed("threshold", edges[0] if edges else 0.0))
    if table["selective"]:
        return Chosen.again(table["selective"][0]["target"])
    return Chosen("coverage", "80")


def _curve(table: Row) -> Row | None:
    found: Row | None = (table.get("curves") or {}).get("risk_coverage")
    return found


def _ranges(table: Row, max_risk: float | None) -> dict[str, Range]:
    """Return minimum, maximum and step of each slider; rates and shares in percent.

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
    """Return the curve with a mark at the choice; empty if no curve was kept."""
    figure = next((f for f in risk_coverage_figures(report) if f.key == "1"), None)
    if figure is None:
        return Markup()
    (picture,) = renderer.draw([figure])
    if picture is not None:
        picture = add_marker(picture, most=figure.parameters["most"], at=outcome.place)
    return figure_html(figure, picture, f"/pages{outcome.address}/charts")
