"""``/pages/calibrations/{id}/operating-point/outcome``: the consequences of a choice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from howsure.report.further_sets import excess
from howsure.report.located import Located, value_of
from howsure.report.plain_parts import typed_or_none
from howsure.report.words.learned import is_exact_test
from howsure.statistics.operating_point import Effect
from service.access.api_keys import WRITE
from service.calibrations.manage import get_calibration
from service.errors import ServiceError
from service.http.problems import problem_on_page
from service.reports.operating_point_routes import PreviewQuery, previewed
from service.web.operating_point.choice import PERCENT, Chosen, typed
from service.web.operating_point.field_errors import on_page
from service.web.page import page
from service.web.page_route import may, tenant_of, workspace_of

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
        may_write=may(request, WRITE),
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
    classes : sequence of str
        Names of the calibration's classes.
    status : int
        Of the preview.
    problem : mapping or None
        Why there is no preview.
    """

    address: str
    source: str
    chosen: Chosen
    preview: Mapping[str, Any]
    classes: Sequence[str] = ()
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
            # The error rate is one that passes the test as it is; the others are measured.
            name: ""
            if value is None
            else typed(name, value)
            if name == "risk"
            else f"{100 * value if name in PERCENT else value:.4g}"
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
    def is_approximate(self) -> bool:
        """Whether the confidence of a tested error rate is approximate."""
        return not is_exact_test(self.preview["assurance"], self.preview["design"])

    @property
    def excess(self) -> str:
        """What to say of an error rate of the evaluation set above the chosen one."""
        on_evaluation = typed_or_none(self.preview["consequences"]["evaluation"], Effect)
        return excess(on_evaluation, self.preview["max_risk"])

    @property
    def tested_page(self) -> str | None:
        """The address of the page with the error rate that passes the test at this coverage."""
        max_risk = self.preview.get("max_risk")
        if max_risk is None or self.chosen.by == "risk":
            return None
        return self._page_of(replace(self.chosen, by="risk", value=typed("risk", max_risk)))

    def name_of(self, index: Located) -> str:
        """Return the name of a class."""
        return str(self.classes[value_of(index)])

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
        return Outcome(address, source, chosen, {}, (), status, on_page(problem))
    row = get_calibration(workspace_of(request), tenant_of(request), reference)
    return Outcome(address, source, chosen, preview, row.config.get("classes") or ())


def _preview(request: Request, reference: str, asked: Mapping[str, str]) -> dict[str, Any]:
    try:
        query = PreviewQuery.model_validate(asked)
    except ValidationError as error:
        # The same locations as those of the API, which takes it from the query.
        raise RequestValidationError(
            [{**found, "loc": ("query", *found["loc"])} for found in error.errors()]
        ) from error
    workspace, tenant_id = workspace_of(request), tenant_of(request)
    found = previewed(workspace, tenant_id, reference, query)
    return found.model_dump(mode="json")
