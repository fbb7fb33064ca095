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
from types import FrameType
from typing import TYPE_CHECKING, cast

import structlog
import uvicorn

from service.cli.failure import CommandFailed

# uvicorn uses the same value.
_WAITING_CONNECTIONS = 2048


def bind(host: str, port: int) -> socket.socket:
    """Return a bound socket.

    Raises
    ------
    CommandFailed
        If the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Accepted connections inherit it. Without it small responses wait for the client's next ACK.
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
    """Let connections wait in the queue of the socket.

    Clients that read the printed address may connect before the server accepts connections.
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
    """Let the kernel drop the first packet of each new connection; accept those that have begun.

    The client sends the packet again a second later, and the connection is refused then.

    Returns
    -------
    bool
        False if there is no such filter: outside Linux, on a Unix socket, or if the kernel requires
        a privilege (CAP_NET_ADMIN) that this process lacks.
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


def can_refuse_new() -> bool:
    """Return whether `refuse_new` works for this process."""
    with socket.socket() as probe:
        return refuse_new(probe)


def accept_last(listener: socket.socket) -> list[socket.socket]:
    """Accept all waiting connections, and stop listening at once.

    Without a filter, a connection whose handshake ends between the two system calls is reset.
    """
    accepted = []
    # The listeners of event loops have no `accept`.
    with socket.socket(fileno=os.dup(listener.fileno())) as own:
        own.setblocking(False)
        with contextlib.suppress(OSError):
            while True:
                accepted.append(own.accept()[0])
        # Closing is not enough, because the event loop keeps the listener open a little longer.
        with contextlib.suppress(OSError):
            own.shutdown(socket.SHUT_RDWR)
    return accepted


# For the database, models, uploads and libraries.
OWN_FILES = 256
LEAST_CONNECTIONS = 16

log = structlog.get_logger(__name__)


def room_for_connections(wanted: int) -> int:
    """Raise the limit of open files for this many connections, and return the number that fits."""
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
# After the server stops accepting. A client that has just connected has longer to send its request.
LAST_DRAIN_SECONDS = 0.1
FIRST_REQUEST_SECONDS = 1.0
POLL_SECONDS = 0.02


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop that measures time in nanoseconds.

    uvloop's own clock advances in milliseconds, which is as long as many predictions take.
    """
    try:
        import uvloop
    except ImportError:  # There is none for Windows.
        return asyncio.new_event_loop()

    class PreciseLoop(uvloop.Loop):
        time = staticmethod(time.monotonic)

    return PreciseLoop()


class Server(uvicorn.Server):
    """A server that stops without failed requests.

    On a stop signal it first reports that it is not ready and drains: it still accepts connections,
    and each connection ends after its next response. Then it accepts no more connections, closes
    idle ones, and gives running requests ``GRACE_SECONDS``.

    Parameters
    ----------
    app : FastAPI
        Its ``state.stopping`` is set at the stop; ``state.front`` is shared by all connections.
    uds : str, optional
        A Unix socket to listen on.
    drain_seconds : float
        Time of draining. It ends early if the service has no connection at the stop, but not where
        the kernel refuses socket filters.
    """

    def __init__(
        self,
        app: "FastAPI",
        *,
        uds: str | None = None,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        # These imports take a second.
        from service.http.connection import Connection
        from service.http.connection_deadlines import Deadlines

        self._context: ConnectionContext = app.state.front
        self._deadlines = Deadlines()
        # uvicorn calls it like a class.
        protocol = cast("type[asyncio.Protocol]", partial(Connection, context=self._context))
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol,
                loop=f"{__name__}:new_event_loop",
                uds=uds,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._drain_seconds = drain_seconds
        self._stopping: asyncio.Event = app.state.stopping
        self._is_hurried = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at the first signal; a second one ends only the draining."""
        if self.should_exit:
            self._is_hurried = True
        else:
            super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start with enough open files for all connections."""
        room = self._context.room
        room.most = min(room.most, room_for_connections(room.most))
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Enforce the deadlines of connections, ten times a second."""
        now = asyncio.get_running_loop().time()
        self._deadlines.enforce(self.server_state.connections, now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Report the stop, drain, finish running requests, and stop."""
        self._stopping.set()
        try:
            # Load balancers get all of the time to see that the service is not ready. Without a
            # filter, a connection may be lost at the end, so clients of an idle service get it too.
            is_used = bool(self.server_state.connections)
            await self._drain(self._drain_seconds, in_full=is_used or not can_refuse_new())
            await self._take_last_connections()
            await self._drain(LAST_DRAIN_SECONDS)
            await self._wait_for_first_requests()
        finally:
            await super().shutdown(sockets)

    def new_protocol(self) -> asyncio.Protocol:
        """Return the protocol of a connection that the event loop did not accept."""
        return self.config.http_protocol_class(  # type: ignore[call-arg]  # as uvicorn makes it
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    async def _take_last_connections(self) -> None:
        """Refuse new connections, and accept those that clients have begun."""
        loop = asyncio.get_running_loop()
        for server in self.servers:
            refused = [one for one in server.sockets if not refuse_new(one)]
            accepted = [connection for one in refused for connection in accept_last(one)]
            if refused:
                server.close()
            for connection in accepted:
                try:
                    await loop.connect_accepted_socket(self.new_protocol, connection)
                except OSError:  # the client has left
                    connection.close()

    async def _wait_for_first_requests(self) -> None:
        """Answer clients that are connected and have not sent a request yet."""
        until = time.monotonic() + FIRST_REQUEST_SECONDS
        while any(cast("Connection", one).n_answered == 0 for one in self.server_state.connections):
            left = until - time.monotonic()
            if left <= 0 or self._is_hurried:
                return
            await self._drain(min(left, POLL_SECONDS))

    async def _drain(self, seconds: float, *, in_full: bool = False) -> None:
        """Keep serving until the time is over or no connection has been open for a moment.

        ``in_full`` keeps serving for the whole time.
        """
        until = time.monotonic() + seconds
        was_alone = False
        while time.monotonic() < until and not self._is_hurried:
            is_alone = not self.server_state.connections
            if is_alone and was_alone and not in_full:
                return
            was_alone = is_alone
            for connection in self.server_state.connections:
                cast("Connection", connection).end_after_answer()
            # The Date header must stay current.
            await self.on_tick(0)
            await asyncio.sleep(POLL_SECONDS)
