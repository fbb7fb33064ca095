"""An HTTP address before an S3 server's that answers for it at times, or not to the end."""

import http.client
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

Request = tuple[str, str]


@dataclass(frozen=True)
class Answer:
    """What is said in place of the server."""

    status: int
    code: str = "InternalError"

    @property
    def body(self) -> bytes:
        return f"<?xml version='1.0'?><Error><Code>{self.code}</Code></Error>".encode()


@dataclass(frozen=True)
class Half:
    """The server's own answer, of which half arrives before the connection ends."""


Fault = Answer | Half | None


class FaultyS3:
    """Passes requests on, but for those that ``fault`` says something else of.

    ``requests`` are all that came, as method and path.
    """

    def __init__(self, port: int, fault: Callable[[Request], Fault] = lambda _: None) -> None:
        self.fault = fault
        self.requests: list[Request] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, port))
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def count(self, method: str, within: str = "") -> int:
        """Return how many requests of a method came whose path holds this."""
        return sum(m == method and within in path for m, path in list(self.requests))


def _handler(faulty: FaultyS3, port: int) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            request = (self.command, self.path)
            faulty.requests.append(request)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            fault = faulty.fault(request)
            if isinstance(fault, Answer):
                self._answer(fault.status, {}, fault.body)
                return
            try:
                with closing(http.client.HTTPConnection("127.0.0.1", port)) as upstream:
                    upstream.request(self.command, self.path, body, dict(self.headers))
                    answer = upstream.getresponse()
                    content = answer.read()
            except ConnectionError:  # the server wants no more of it, as of an upload that ended
                self.close_connection = True
                return
            self._answer(answer.status, dict(answer.headers), content, half=fault is not None)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815 - http.server's names

        def _answer(
            self, status: int, headers: dict[str, str], content: bytes, *, half: bool = False
        ) -> None:
            self.send_response_only(status)
            kept = {name: value for name, value in headers.items() if name.lower() not in _HOP}
            if self.command != "HEAD":
                kept["Content-Length"] = str(len(content))
            for name, value in kept.items():
                self.send_header(name, value)
            self.end_headers()
            self.close_connection = half
            with suppress(ConnectionError):  # who asked has left
                self.wfile.write(content[: len(content) // 2] if half else content)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


_HOP = ("connection", "transfer-encoding", "content-length", "keep-alive")
