"""The HTTP server of the service, in the foreground or embedded."""

import asyncio
import contextlib
import ctypes
import errno
import os
import resource
import socket
import struct
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, cast

import structlog
import uvicorn

from service.cli.failure import CommandFailed

# uvicorn uses the same value.
_WAITING_CONNECTIONS = 2048


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a socket that is bound; ``shared`` if other processes bind to the same port.

    Raises
    ------
    CommandFailed
        If the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    # Accepted connections inherit it; without it small answers wait for the client's next ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        option = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        raise CommandFailed(
            f"cannot listen on {host}:{port} ({error.strerror}); choose another {option}"
        ) from error
    listener.set_inheritable(False)
    return listener


def listen(listener: socket.socket) -> None:
    """Have connections wait from now on.

    The server listens a moment later only; who reads the address connects at once.
    """
    listener.listen(_WAITING_CONNECTIONS)


def address_of(listener: socket.socket, host: str) -> str:
    """Return the URL of the service, with the port of the socket."""
    named = f"[{host}]" if ":" in host else host
    return f"http://{named}:{listener.getsockname()[1]}"


# <asm/socket.h>; Python has no name for it.
_SO_ATTACH_FILTER = 26
# Classic BPF over the TCP header: a packet with SYN and without ACK is dropped, others are kept.
_DROP_NEW = (
    (0x30, 0, 0, 13),  # load the byte of flags
    (0x54, 0, 0, 0x12),  # keep SYN and ACK
    (0x15, 0, 1, 0x02),  # SYN alone?
    (0x06, 0, 0, 0),  # yes: drop it
    (0x06, 0, 0, 0xFFFFFFFF),  # no: keep it
)


def refuse_new(listener: socket.socket) -> bool:
    """Have the kernel drop the first packet of every new connection; those begun can be accepted.

    A client whose first packet is dropped sends it again a second later, and is refused then.

    Returns
    -------
    bool
        False where there is no such filter: outside Linux, on a Unix socket, and where the kernel
        demands a privilege (CAP_NET_ADMIN) that this process lacks.
    """
    if sys.platform != "linux" or listener.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *op) for op in _DROP_NEW))
    option = struct.pack("HP", len(_DROP_NEW), ctypes.addressof(program))
    try:
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, option)
    except OSError:
        return False
    return True


def accept_last(listener: socket.socket) -> list[socket.socket]:
    """Accept every connection that waits, and stop listening in the same moment.

    Without a filter this is the most that can be done: only a connection whose handshake ends
    between the two system calls is reset.
    """
    accepted = []
    # Event loops lend a listener without `accept`.
    with socket.socket(fileno=os.dup(listener.fileno())) as own:
        own.setblocking(False)
        with contextlib.suppress(OSError):
            while True:
                accepted.append(own.accept()[0])
        # Closing is not enough: the event loop holds the listener open a little longer.
        with contextlib.suppress(OSError):
            own.shutdown(socket.SHUT_RDWR)
    return accepted


# For the database, models, uploads and libraries.
OWN_FILES = 256
LEAST_CONNECTIONS = 16

log = structlog.get_logger(__name__)


def room_for_connections(wanted: int) -> int:
    """Return how many of so many connections can be open, once as many may be as is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    allowed = wanted + OWN_FILES
    if hard != resource.RLIM_INFINITY:
        allowed = min(allowed, hard)
    if soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        soft = allowed
    room = max(LEAST_CONNECTIONS, min(wanted, soft - OWN_FILES))
    if room < wanted:
        log.warning("fewer_connections", wanted=wanted, held=room, open_files=soft)
    return room


if TYPE_CHECKING:
    from fastapi import FastAPI

    from service.http.connection import Connection
    from service.http.connection_context import ConnectionContext

GRACE_SECONDS = 5
DRAIN_SECONDS = 1.0
# For connections that arrive just before the server stops accepting.
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
        Its ``state.stopping`` is set; its ``state.front`` is what connections have in common.
    uds : str, optional
        A Unix socket to listen on.
    drain_seconds : float
        How long it goes on, unless its last connection ends before.
    """

    def __init__(
        self,
        app: "FastAPI",
        *,
        uds: str | None = None,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        # These imports take a second.
        from service.http.connection import Connection, Deadlines

        self._context: ConnectionContext = app.state.front
        self._deadlines = Deadlines()
        # uvicorn calls it, as it would a class.
        protocol = cast("type[asyncio.Protocol]", partial(Connection, context=self._context))
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol,
                uds=uds,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._drain_seconds = drain_seconds
        self._stopping: asyncio.Event = app.state.stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, with as many open files as connections may take."""
        room = self._context.room
        room.most = min(room.most, room_for_connections(room.most))
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Enforce the deadlines of connections, ten times a second."""
        now = asyncio.get_running_loop().time()
        self._deadlines.enforce(self.server_state.connections, now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let clients go elsewhere, stop taking requests, let those under way end, and stop."""
        self._stopping.set()
        await self._drain(self._drain_seconds)
        await self._take_last_connections()
        await self._drain(LAST_ARRIVALS_SECONDS)
        await super().shutdown(sockets)

    def new_protocol(self) -> asyncio.Protocol:
        """Return the protocol of a connection that the event loop did not accept itself."""
        return self.config.http_protocol_class(  # type: ignore[call-arg]  # as uvicorn makes it
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    async def _take_last_connections(self) -> None:
        """Begin no further connection, and take those that clients have begun."""
        loop = asyncio.get_running_loop()
        for server in self.servers:
            # A listener that several processes accept from is not here: the others go on.
            refused = [one for one in getattr(server, "sockets", ()) if not refuse_new(one)]
            accepted = [connection for one in refused for connection in accept_last(one)]
            if refused:
                server.close()
            for connection in accepted:
                try:
                    await loop.connect_accepted_socket(self.new_protocol, connection)
                except OSError:  # the client has left
                    connection.close()

    async def _drain(self, seconds: float) -> None:
        """Keep serving for so long, or until no connection has been open for a moment."""
        until = time.monotonic() + seconds
        was_alone = False
        while time.monotonic() < until and not self.force_exit:
            is_alone = not self.server_state.connections
            if is_alone and was_alone:
                return
            was_alone = is_alone
            for connection in self.server_state.connections:
                cast("Connection", connection).end_after_answer()
            # The Date header must stay current.
            await self.on_tick(0)
            await asyncio.sleep(POLL_SECONDS)
