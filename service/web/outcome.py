"""What follows from a choice of an operating point, as its page shows it: the API's preview."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from service.web.asker import may_write
from service.web.chosen import Chosen, linked, typed
from service.web.handed_on import Answer, handed_on
from service.web.page import page
from service.web.page_route import PageRoute
from service.web.pointed import Pointed

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
    def shown(self) -> Pointed:
        """Its numbers."""
        return Pointed(self.preview)

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
