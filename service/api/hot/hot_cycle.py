"""One hot exchange on a connection."""

import asyncio
from typing import ClassVar, Protocol

from service.api.hot.exchange import GiveUp, HotAnswer, HotRequest

_NOBODY_WAITS = asyncio.Event()


class Connection(Protocol):
    """Where the answer goes."""

    def write_answer(self, cycle: "HotCycle", answer: HotAnswer) -> None:
        """Write the answer to the request that is under way."""


class HotCycle(HotRequest, eq=False):
    """A hot exchange, with what uvicorn's protocol looks at in the one under way."""

    message_event: ClassVar[asyncio.Event] = _NOBODY_WAITS
    response_started: ClassVar[bool] = False

    connection: Connection | None
    keep_alive: bool
    response_complete: bool = False
    disconnected: bool = False
    give_up: GiveUp | None = None

    def reply(self, answer: HotAnswer) -> None:
        """Answer, once."""
        connection = self.connection
        if connection is not None:
            self.end()
            connection.write_answer(self, answer)

    def end(self) -> None:
        """Take note that it is answered, and hold on to nothing."""
        self.response_complete = True
        self.connection = self.give_up = None
        self.body = b""

    def leave(self) -> None:
        """Give it up: its client is gone."""
        self.disconnected = True
        give_up = self.give_up
        self.end()
        if give_up is not None:
            give_up()
