"""The HTTP server of the service, in the foreground or embedded."""

import asyncio
import socket
import time
from typing import TYPE_CHECKING

import uvicorn

from service.cli.last_connections import begin_no_more
from service.cli.open_files import room_for_connections

if TYPE_CHECKING:
    from fastapi import FastAPI

    from service.api.hot.front import Front

GRACE_SECONDS = 5
DRAIN_SECONDS = 1.0
# For connections that were begun just before none is any more.
LAST_ARRIVALS_SECONDS = 0.1
POLL_SECONDS = 0.02


class Server(uvicorn.Server):
    """Ends so that nothing fails which was sent.

    Told to stop, it says so to the application, by whose readiness others learn of it, and goes on
    for a while: connections are accepted, and each answer is the last of its connection. Then
    no connection is begun any more, idle ones are closed, and requests still under way get
    ``GRACE_SECONDS``.

    Parameters
    ----------
    app : FastAPI
        Its ``state.stopping`` is set.
    uds : str, optional
        A Unix socket to listen on.
    protocol : type, optional
        The protocol of a connection, by default that of ``state.front``; one that closes after an
        answer once ``stopping`` is set.
    drain_seconds : float
        How long it goes on, unless its last connection ends before.
    """

    def __init__(
        self,
        app: "FastAPI",
        *,
        uds: str | None = None,
        protocol: type[asyncio.Protocol] | None = None,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        from service.api.hot.protocol import protocol_of  # noqa: PLC0415 - takes a second

        super().__init__(
            uvicorn.Config(
                app,
                http=protocol or protocol_of(app.state.front),
                uds=uds,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._drain_seconds = drain_seconds
        self._stopping: asyncio.Event = app.state.stopping
        self._front: Front | None = getattr(app.state, "front", None)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, with as many open files as connections may take."""
        if self._front is not None:
            self._front.room.most = room_for_connections(self._front.room.most)
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let clients go elsewhere, stop taking requests, let those under way end, and stop."""
        self._stopping.set()
        await self._drain(self._drain_seconds)
        for server in self.servers:
            # Those that several processes accept from have none: the others go on.
            begin_no_more(getattr(server, "sockets", ()))
        await self._drain(LAST_ARRIVALS_SECONDS)
        await super().shutdown(sockets)

    async def _drain(self, seconds: float) -> None:
        """Go on for so long, or until nobody has been there for a moment."""
        until = time.monotonic() + seconds
        was_alone = False
        while time.monotonic() < until and not self.force_exit:
            is_alone = not self.server_state.connections
            if is_alone and was_alone:
                return
            was_alone = is_alone
            for connection in self.server_state.connections:
                _end_after_answer(connection)
            # The date of answers goes on as well.
            await self.on_tick(0)
            await asyncio.sleep(POLL_SECONDS)


def _end_after_answer(connection: object) -> None:
    """Have an answer that has not begun say that it is the last; others keep their connection."""
    cycle = getattr(connection, "cycle", None)
    if cycle is not None and not cycle.response_started:
        cycle.keep_alive = False
