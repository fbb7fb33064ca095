"""One hot exchange on a connection."""

import asyncio
from typing import Any

from service.api.hot.arriving_body import ArrivingBody
from service.api.hot.exchange import GiveUp, Headers, HotRequest
from service.api.hot.limits import ConnectionLimits, Pace
from service.api.hot.routes import HotRoute, query_of

_NOBODY_WAITS = asyncio.Event()


class HotCycle:
    """A hot exchange, with what uvicorn's protocol looks at in the one under way."""

    __slots__ = (
        "_give_up",
        "arrived",
        "body",
        "disconnected",
        "found",
        "headers",
        "keep_alive",
        "memo",
        "pace",
        "response_complete",
        "target",
    )
    message_event = _NOBODY_WAITS
    response_started = False

    def __init__(
        self,
        found: HotRoute,
        *,
        target: bytes,
        headers: Headers,
        arrived: float,
        keep_alive: bool,
        body: ArrivingBody,
        memo: dict[str, Any] | None = None,
    ) -> None:
        self.found = found
        self.target = target
        self.headers = headers
        self.arrived = arrived
        self.keep_alive = keep_alive
        self.body = body
        self.memo: dict[str, Any] = {} if memo is None else memo
        self.pace: Pace | None = None
        self.response_complete = False
        self.disconnected = False
        self._give_up: GiveUp | None = None

    def request(self) -> HotRequest:
        """Return the request, which is whole."""
        self.body.release()
        return HotRequest(
            route=self.found.route,
            parameters=self.found.parameters,
            query=query_of(self.target),
            headers=self.headers,
            body=self.body.whole(),
            arrived=self.arrived,
            memo=self.memo,
        )

    def again(self, body: ArrivingBody, *, arrived: float) -> "HotCycle":
        """Return the exchange of another request that differs in nothing but its body."""
        return HotCycle(
            self.found,
            target=self.target,
            headers=self.headers,
            arrived=arrived,
            keep_alive=self.keep_alive,
            body=body,
            memo=self.memo,
        )

    def begun(self, give_up: GiveUp) -> None:
        """Keep how to give it up, unless it is answered already."""
        if not self.response_complete:
            self._give_up = give_up

    def end(self) -> None:
        """Take note that it is answered, and hold on to nothing."""
        self.response_complete = True
        self._give_up = None
        self.body.release()

    def leave(self) -> None:
        """Give it up: its client is gone."""
        self.disconnected = True
        give_up = self._give_up
        self.end()
        if give_up is not None:
            give_up()

    def pace_of(self, limits: ConnectionLimits, now: float) -> Pace:
        """Return how fast the body comes, from when it did not come at once."""
        if self.pace is None:
            self.pace = Pace(limits, started=now)
        return self.pace
