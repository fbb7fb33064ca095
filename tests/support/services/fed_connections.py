"""Connections without sockets: the test feeds bytes, reads answers, and moves the clock."""

import asyncio
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from hot_fronts import Answer, QueryApp, ordinary_app, read_answer
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from service.access.rate_limits import UNLIMITED
from service.http.connection import Connection
from service.http.connection_context import ConnectionContext
from service.http.connection_deadlines import Deadlines
from service.http.connection_limits import ConnectionLimits
from service.http.prediction_exchange import HttpResponse

# Of one piece that was fed, for what it begins to end.
STEPS = 12
# Target and body of a request, or the status of a refusal.
Seen = tuple[bytes, bytes] | int


@dataclass
class Recorder:
    """Answers everything with nothing, as an ASGI app and as a handler of predictions."""

    seen: list[Seen] = field(default_factory=list)
    max_body_bytes: int = 2**20

    async def __call__(self, scope, receive, send) -> None:
        if sum(name == b"host" for name, _ in scope["headers"]) != 1:
            # uvicorn passes it on; our connections refuse it.
            self.seen.append(400)
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            return
        query = scope["query_string"]
        self.seen.append((scope["raw_path"] + (b"?" + query if query else b""), body))
        await Response()(scope, receive, send)

    def authenticate(self, _head):
        return UNLIMITED

    def begin(self, request):
        self.seen.append((request.head.target, bytes(request.body)))
        request.reply(HttpResponse(200, b""))
        return lambda: None

    def refuse(self, *_, **__):
        return HttpResponse(400, b"")

    def client_disconnected(self, *_, **__):
        pass


class Transport(asyncio.Transport):
    """Keeps what is written, as a client that reads all of it or ``n_taken`` bytes."""

    def __init__(self, *, is_read: bool = True) -> None:
        super().__init__()
        self.written = b""
        self.is_over = False
        self.is_read, self.n_taken = is_read, 0

    def get_extra_info(self, _name, default=None):
        return default

    def write(self, data) -> None:
        assert not self.is_over
        self.written += data

    def is_closing(self) -> bool:
        return self.is_over

    def close(self) -> None:
        self.is_over = True

    def pause_reading(self) -> None:
        pass

    can_write_eof, write_eof, abort, resume_reading = lambda _: True, close, close, pause_reading

    def get_write_buffer_size(self) -> int:
        return 0 if self.is_read else len(self.written) - self.n_taken


class MovedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock the test moves."""

    now = 0.0

    def time(self) -> float:
        return self.now


class FedServer:
    """Connections with these limits, as a server has them that never waits."""

    def __init__(self, **limits) -> None:
        self.loop = MovedLoop()
        self.hot = QueryApp()
        self.state = ServerState()
        self.deadlines = Deadlines()
        self.config = Config(ordinary_app(), log_config=None, access_log=False, lifespan="off")
        self.config.load()
        self.context = ConnectionContext(
            predictions=self.hot, stopping=asyncio.Event(), limits=ConnectionLimits(**limits)
        )

    def connect(self, *, is_read: bool = True) -> "FedConnection":
        protocol = Connection(self.config, self.state, {}, self.loop, context=self.context)
        return FedConnection(self, protocol, Transport(is_read=is_read))

    def run(self, call: Callable[..., object], *arguments: object) -> None:
        """Call it on the loop, with all that follows at once."""
        self.loop.call_soon(call, *arguments)
        for _ in range(STEPS):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    def close(self) -> None:
        """End all connections."""
        for connection in tuple(self.state.connections):
            self.run(connection.connection_lost, None)
        self.loop.close()

    def advance(self, seconds: float) -> None:
        """Let time pass, in which the server looks at its connections ten times a second."""
        for _ in range(round(10 * seconds)):
            self.loop.now += 0.1
            self.run(self.deadlines.enforce, self.state.connections, self.loop.now)


class FedConnection:
    """A client's side of one connection."""

    def __init__(self, server: FedServer, protocol: Connection, transport: Transport) -> None:
        self.server, self.protocol, self.transport = server, protocol, transport
        self.n_read = 0
        server.run(protocol.connection_made, transport)

    def send(self, data: bytes) -> None:
        if not self.transport.is_over:
            self.server.run(self.protocol.data_received, data)

    def trickle(self, n_bytes: int, *, seconds: float) -> None:
        """Send so many bytes at an even rate, a piece every tenth of a second."""
        n_pieces = round(10 * seconds)
        for _ in range(n_pieces):
            self.send(b"x" * (n_bytes // n_pieces))
            self.server.advance(0.1)

    def answer(self) -> Answer:
        """Return the next answer; ConnectionError if there is none yet."""
        file = io.BytesIO(self.transport.written[self.n_read :])
        answer = read_answer(file)
        self.n_read += file.tell()
        return answer

    def is_ended(self) -> bool:
        return self.transport.is_over


def our_connection(recorder: Recorder, stopping: asyncio.Event) -> Callable[..., asyncio.Protocol]:
    """Return how connections are made that hand predictions to the recorder."""
    return partial(Connection, context=ConnectionContext(stopping=stopping, predictions=recorder))


def uvicorn_connection(*_: object) -> Callable[..., asyncio.Protocol]:
    """Return uvicorn's own."""
    return HttpToolsProtocol


def read_requests(kind, pieces: Sequence[bytes]) -> list[Seen]:
    """Return what a connection of this kind reads of pieces: requests, and a refusal at its end."""

    async def read() -> list[Seen]:
        recorder, transport = Recorder(), Transport()
        config = Config(recorder, log_config=None, access_log=False, lifespan="off", ws="none")
        config.load()
        make = kind(recorder, asyncio.Event())
        protocol = make(config, ServerState(), {})
        protocol.connection_made(transport)
        for piece in pieces:
            if transport.is_over:
                break
            protocol.data_received(piece)
            for _ in range(STEPS):
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        if transport.written.count(b"HTTP/1.1 4"):
            status = transport.written.rpartition(b"HTTP/1.1 4")[2][:2]
            recorder.seen.append(400 + int(status))
        seen = recorder.seen
        return seen[: seen.index(400) + 1] if 400 in seen else seen

    return asyncio.run(read())
