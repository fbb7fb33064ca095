"""An HTTP server that answers as told, and both clients of it."""

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from howsure.client import AsyncClient, Client

CHUNK_BYTES = 2**16


@dataclass
class Scripted:
    """Answers are given one after the other, the last one again and again."""

    answers: list[tuple[int, dict[str, str], bytes]]
    asked: list[tuple[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    def next(self) -> tuple[int, dict[str, str], bytes]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def served_by(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[int]:
    """Answer requests at a port of this machine, which is yielded, until the block ends."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def scripted(*answers: tuple[int, dict[str, str], bytes]) -> Iterator[Scripted]:
    """Serve on a port of its own; bodies are read to their end and forgotten."""
    script = Scripted(list(answers))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            script.asked.append((self.command, self.path))
            script.headers.append({name.lower(): value for name, value in self.headers.items()})
            left = int(self.headers.get("Content-Length", 0))
            while left:
                left -= len(self.rfile.read(min(left, CHUNK_BYTES)))
            status, headers, body = script.next()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 - names of the library

        def log_message(self, *_: Any) -> None:
            pass

    with served_by(Handler) as port:
        script.url = f"http://127.0.0.1:{port}"
        yield script


KINDS = ("sync", "async")


class Awaited:
    """An `AsyncClient` whose methods are waited for on a loop of its own."""

    def __init__(self, client: AsyncClient, runner: asyncio.Runner) -> None:
        self._client = client
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        assert inspect.iscoroutinefunction(method), name
        return lambda *args, **kwargs: self._runner.run(method(*args, **kwargs))


@contextmanager
def client_of(kind: str, url: str, **options: Any) -> Iterator[Any]:
    """Yield a client of either kind."""
    if kind == "sync":
        with Client(url, **options) as client:
            yield client
        return
    with asyncio.Runner() as runner:
        made = AsyncClient(url, **options)
        yield Awaited(made, runner)
        runner.run(made.close())
