"""Room for so many connections: those that wait the longest make place for new ones."""

from collections.abc import Iterable, Sized
from heapq import nlargest
from operator import itemgetter
from typing import Protocol

import structlog

# No connection has to make place sooner: what it sent may not have been read.
GRACE_SECONDS = 0.02
# Who has asked nothing yet waits so many times as long as others who wait: were it to go before
# all others, a flood of those who ask once would leave new clients no time to ask.
UNASKED = 4.0
# So many make place together, so that not all are looked at for each that comes.
SHARE = 16
TOLD_EVERY_SECONDS = 10.0

log = structlog.get_logger(__name__)


class Held(Protocol):
    """A connection as it is looked at when there are too many."""

    def waits_since(self) -> float | None:
        """Return when it began to wait; None where somebody is owed something."""

    def has_asked(self) -> bool:
        """Tell whether it was of use before."""

    def leave(self) -> None:
        """End it."""


class Connections(Sized, Iterable[object], Protocol):
    """All that are held."""


class ConnectionRoom:
    """Keeps the number of connections at ``most``.

    First to go is who waits the longest, between two requests or, which counts four times, before
    the end of the first one's headers. Nobody goes whose request is being received or answered.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._told = -TOLD_EVERY_SECONDS

    def has_room(self, connections: Connections, now: float) -> bool:
        """Tell whether the newest of these may stay, after others have left if they must."""
        if len(connections) <= self.most:
            return True
        left = self._have_leave(connections, now)
        if now - self._told >= TOLD_EVERY_SECONDS:
            self._told = now
            log.warning("connections_full", most=self.most, ended=left)
        return left > 0

    def _have_leave(self, connections: Connections, now: float) -> int:
        waiting: list[tuple[float, Held]] = []
        for connection in connections:
            held: Held = connection  # type: ignore[assignment]  # all are of our own protocol
            since = held.waits_since()
            if since is not None and now - since >= GRACE_SECONDS:
                waited = (now - since) * (1.0 if held.has_asked() else UNASKED)
                waiting.append((waited, held))
        wanted = len(connections) - self.most + self.most // SHARE
        longest = nlargest(wanted, waiting, key=itemgetter(0))
        for _, held in longest:
            held.leave()
        return len(longest)
