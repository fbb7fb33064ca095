"""Connections of the service over real sockets, with an app of few words behind them."""

import asyncio
import hashlib
import json
import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from fastapi import FastAPI, Request
from without_socket_filters import refuse_socket_filters

from service.access.rate_limits import UNLIMITED
from service.cli.server import Server
from service.errors import ServiceError
from service.http.connection_context import ConnectionContext
from service.http.connection_limits import ConnectionLimits
from service.http.prediction_exchange import HttpResponse
from service.http.problems import status_of

MAX_BODY_BYTES = 100_000
JSON = (b"content-type", b"application/json")


class QueryApp:
    """Does what the query says; by default it tells what it was asked, before `begin` returns."""

    max_body_bytes = MAX_BODY_BYTES

    def __init__(self) -> None:
        self._begun: queue.Queue[str] = queue.Queue()
        self.left = threading.Semaphore(0)
        self.released = threading.Event()
        self.n_begun = 0
        self.broken_off: queue.Queue[str] = queue.Queue()

    def wait_for(self, query: str) -> None:
        """Wait until a request with this query is begun; earlier ones are forgotten."""
        while self._begun.get(timeout=10) != query:
            pass

    def authenticate(self, _head):
        return UNLIMITED

    def begin(self, request):
        self.n_begun += 1
        head, reply = request.head, request.reply
        self._begun.put(head.query.decode())
        loop = asyncio.get_running_loop()
        found = {
            "route": head.route,
            "parameters": dict(head.parameters),
            "query": head.query.decode(),
            "bytes": len(request.body),
            "headers": sorted(name.decode() for name, _ in head.headers),
        }
        answer = HttpResponse(200, json.dumps(found).encode(), [JSON])
        match head.query.split(b"="):
            case [b"digest"]:
                digest = hashlib.sha256(request.body).hexdigest()
                reply(HttpResponse(200, json.dumps(digest).encode(), [JSON]))
            case [b"never"]:
                pass
            case [b"raise"]:
                raise ZeroDivisionError
            case [b"later"]:
                loop.call_later(0.02, reply, answer)
            case [b"released"]:
                waiting = loop.run_in_executor(None, self.released.wait, 10)
                waiting.add_done_callback(lambda _: reply(answer))
            case [b"twice"]:
                reply(answer)
                reply(answer)
            case [b"big", size]:
                reply(HttpResponse(200, b"b" * int(size)))
            case _:
                reply(answer)
        return self.left.release if head.query == b"never" else lambda: None

    def client_disconnected(self, head, *, arrived, **_):
        assert arrived <= asyncio.get_running_loop().time()
        self.broken_off.put(head.route)

    def refuse(self, head, error, *, arrived, **_):
        assert arrived <= asyncio.get_running_loop().time()
        if not isinstance(error, ServiceError):
            return HttpResponse(500, b"{}", [JSON])
        body = json.dumps({"route": head.route, "refused": error.code(), "detail": error.message})
        return HttpResponse(status_of(error), body.encode(), [JSON])


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self):
        return json.loads(self.body)


def read_answer(file: BinaryIO, *, to: str = "POST") -> Answer:
    """Read one whole answer to a method; ConnectionError if there is none."""
    line = file.readline()
    if not line:
        raise ConnectionError("closed without an answer")
    version, status, _ = line.split(b" ", 2)
    assert version == b"HTTP/1.1"
    headers = {}
    while (line := file.readline().rstrip()) != b"":
        name, _, value = line.decode().partition(": ")
        name = name.lower()  # proxies write capitals
        assert name not in headers
        headers[name] = value
    body = b""
    if int(status) == 100 or to == "HEAD":
        return Answer(int(status), headers, body)
    if headers.get("transfer-encoding") == "chunked":
        while size := int(file.readline(), 16):
            body += file.read(size + 2)[:-2]
        file.readline()
    else:
        body = file.read(int(headers["content-length"]))
    return Answer(int(status), headers, body)


class Connection:
    """A client's side of one connection."""

    def __init__(self, address) -> None:
        self.socket = socket.create_connection(address, timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self, *, to: str = "POST") -> Answer:
        """Read one whole answer; ConnectionError if there is none."""
        return read_answer(self.file, to=to)

    def is_ended(self) -> bool:
        """Wait for the server to end the connection; false if it says something more."""
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True


def answer_to(sent: bytes, address, *, to: str = "POST") -> Answer:
    """Send a request on a connection of its own and return the answer."""
    with Connection(address) as connection:
        connection.send(sent)
        return connection.answer(to=to)


@dataclass
class Running:
    address: tuple[str, int]
    hot: QueryApp
    front: ConnectionContext
    server: Server
    thread: threading.Thread

    def connect(self) -> Connection:
        return Connection(self.address)

    def answer_to(self, sent: bytes) -> Answer:
        return answer_to(sent, self.address)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()


def ordinary_app() -> FastAPI:
    """Return an app for all requests that are no predictions."""
    app = FastAPI()

    @app.api_route("/ordinary/{name}", methods=["GET", "POST"])
    async def ordinary(name: str, request: Request) -> dict:
        return {"ordinary": name, "bytes": len(await request.body())}

    @app.post("/unread")
    async def unread() -> dict:
        return {"ordinary": "unread"}

    return app


@contextmanager
def hot_front(
    *,
    drain_seconds: float = 0.0,
    socket_filters: bool = True,
    max_body_bytes: int = MAX_BODY_BYTES,
    **limits,
) -> Iterator[Running]:
    """Run a server with these limits of connections until the block ends.

    With ``socket_filters=False`` the kernel refuses socket filters to the server.
    """
    hot = QueryApp()
    hot.max_body_bytes = max_body_bytes
    app = ordinary_app()
    app.state.stopping = asyncio.Event()
    front = app.state.front = ConnectionContext(
        predictions=hot, stopping=app.state.stopping, limits=ConnectionLimits(**limits)
    )

    server = Server(app, drain_seconds=drain_seconds)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        if not socket_filters:
            refuse_socket_filters()
        server.run(sockets=[listener])

    thread = threading.Thread(target=serve)
    thread.start()
    running = Running(listener.getsockname(), hot, front, server, thread)
    try:
        # The listener is there already: whoever connects waits for the start.
        yield running
    finally:
        hot.released.set()
        running.stop()


def post(target: str, body: bytes = b"", **headers: str) -> bytes:
    """Return a request with its length."""
    return request("POST", target, body, **{"Content-Length": str(len(body))}, **headers)


def request(method: str, target: str, body: bytes = b"", **headers: str) -> bytes:
    """Return a request with these headers."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = [f"{method} {target} HTTP/1.1", "Host: localhost", *lines, "", ""]
    return "\r\n".join(head).encode() + body
