"""A hot request whose body is being received."""

from service.api.hot.arriving_body import ArrivingBody
from service.api.hot.exchange import RequestHead
from service.api.hot.limits import ConnectionLimits, Pace


class ArrivingRequest:
    """A head, and what has come of its body."""

    __slots__ = ("arrived", "body", "head", "keep_alive", "pace")

    def __init__(
        self, head: RequestHead, *, arrived: float, keep_alive: bool, body: ArrivingBody
    ) -> None:
        self.head = head
        self.arrived = arrived
        self.keep_alive = keep_alive
        self.body = body
        self.pace: Pace | None = None

    def pace_of(self, limits: ConnectionLimits, now: float) -> Pace:
        """Return how fast the body comes, from when it did not come at once."""
        if self.pace is None:
            self.pace = Pace(limits, arrived=self.arrived, started=now)
        return self.pace
