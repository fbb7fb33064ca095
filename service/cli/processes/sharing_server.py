"""The HTTP server of one of several processes that take connections from one socket."""

import asyncio
import socket

from fastapi import FastAPI

from service.cli.processes.open_connections import OpenConnections
from service.cli.server import DRAIN_SECONDS, Server

# Long enough for another process to wake. It is all that a process that hangs costs.
PAUSE_SECONDS = 0.002


class SharingServer(Server):
    """Leaves a connection to the process that holds the fewest, unless that one is busy.

    Event loops take all that wait at once: the connections that a client opens together would
    stay, for as long as it keeps them, with the one process that was first to wake.
    """

    def __init__(
        self,
        app: FastAPI,
        *,
        place: int,
        table: OpenConnections,
        pause_seconds: float = PAUSE_SECONDS,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        super().__init__(app, drain_seconds=drain_seconds)
        self.pause_seconds = pause_seconds
        self._place = place
        self._table = table
        self._accepting: list[_Accepting] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then take connections from these sockets."""
        await super().startup(sockets=[])
        for listener in sockets or []:
            self._accepting.append(_Accepting(self, listener))
        # It closes them as it does those of the event loop.
        self.servers.extend(self._accepting)  # type: ignore[arg-type]  # they have what it uses

    async def on_tick(self, counter: int) -> bool:
        """Show now and then also what was closed, as the server does what it does now and then."""
        self.show_held()
        return await super().on_tick(counter)

    def show_held(self) -> int:
        """Show the other processes how many connections this one holds, and return it."""
        held = len(self.server_state.connections) + sum(a.connecting for a in self._accepting)
        self._table.hold(self._place, held)
        return held

    def holds_more_than_another(self) -> bool:
        """Tell whether another process holds fewer connections."""
        return self.show_held() > self._table.least()


class _Accepting:
    """Takes connections from a socket, one at a time, until it is closed."""

    def __init__(self, server: SharingServer, listener: socket.socket) -> None:
        self._server = server
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._connecting: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        listener.setblocking(False)
        listener.listen(server.config.backlog)
        self._listen()

    @property
    def connecting(self) -> int:
        """How many were taken and are not with the server yet."""
        return len(self._connecting)

    def close(self) -> None:
        """Take no more."""
        self._loop.remove_reader(self._listener.fileno())
        if self._pause is not None:
            self._pause.cancel()

    async def wait_closed(self) -> None:
        """Wait until those taken are with the server."""
        if self._connecting:
            await asyncio.wait(self._connecting)

    def _listen(self) -> None:
        self._loop.add_reader(self._listener.fileno(), self._one_waits)

    def _one_waits(self) -> None:
        if self._server.holds_more_than_another():
            self._loop.remove_reader(self._listener.fileno())
            self._pause = self._loop.call_later(self._server.pause_seconds, self._take_after_all)
        else:
            self._take()

    def _take_after_all(self) -> None:
        self._pause = None
        self._take()
        self._listen()

    def _take(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # another process was first, or the client has left already
            return
        connecting = self._loop.create_task(self._connect(connection))
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connecting.discard)
        self._server.show_held()

    async def _connect(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError:  # it was closed meanwhile
            connection.close()

    def _protocol(self) -> asyncio.Protocol:
        server = self._server
        return server.config.http_protocol_class(  # type: ignore[call-arg]  # as uvicorn makes it
            config=server.config,
            server_state=server.server_state,
            app_state=server.lifespan.state,
        )
