"""Connections without sockets: bytes in, the requests that were read out."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from service.access.rate_limits import UNLIMITED
from service.http.connection import Connection
from service.http.connection_context import ConnectionContext
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
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        query = scope["query_string"]
        self.seen.append((scope["raw_path"] + (b"?" + query if query else b""), body))
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-length", b"0")],
            }
        )
        await send({"type": "http.response.body", "body": b""})

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
    """Takes what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_over = False

    def get_extra_info(self, _name, default=None):
        return default

    def write(self, data) -> None:
        assert not self.is_over
        self.written += data

    def write_eof(self) -> None:
        self.is_over = True

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return self.is_over

    def close(self) -> None:
        self.is_over = True

    def abort(self) -> None:
        self.is_over = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0


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
