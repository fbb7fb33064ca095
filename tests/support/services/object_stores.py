"""S3 servers and stores that fail on purpose."""

import http.client
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Self

from scripted_server import served_by

from service.storage.artifact_store import ArtifactStore

BUCKET = "artifacts"
KEY, SECRET = "key", "secret"
STOP_SECONDS = 30


class S3Server:
    """Serves one bucket."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / BUCKET).mkdir(parents=True)

    def __enter__(self) -> Self:
        options = ["--addr=127.0.0.1:0", f"--auth-key={KEY},{SECRET}"]
        self._process = subprocess.Popen(
            [_rclone(), "serve", "s3", *options, str(self._folder)],
            env={"RCLONE_CONFIG": str(self._folder / "none.conf"), "HOME": str(self._folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.port = self._announced_port()
        # A log that nobody reads would stop it when the pipe is full.
        self._reader = threading.Thread(target=self._process.stderr.read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(STOP_SECONDS)
        self._reader.join(STOP_SECONDS)
        self._process.stderr.close()

    def objects(self) -> list[str]:
        """Return all that lies in the bucket, parts of uploads among them."""
        root = self._folder / BUCKET
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())

    def _announced_port(self) -> int:
        said = []
        for line in self._process.stderr:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                return int(found[1])
            said.append(line)
        raise AssertionError(f"the S3 server did not start: {''.join(said)}")


def s3_variables(port: int, *, key: str = KEY, secret: str = SECRET) -> dict[str, str]:
    """Return the environment of a client of the server behind a port of this machine."""
    return {
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
    }


def _rclone() -> str:
    beside = Path(sys.executable).with_name("rclone")
    found = str(beside) if beside.exists() else shutil.which("rclone")
    assert found, "rclone is not installed: it comes with the development dependencies"
    return found


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
        self._serving = served_by(_handler(self, port))

    def __enter__(self) -> Self:
        self.port = self._serving.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._serving.__exit__(None, None, None)

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


class WrappedStore(ArtifactStore):
    """Hands everything on; a test overrides what it watches."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store


def _handed_on(name: str) -> Callable[..., Any]:
    return lambda self, *arguments: getattr(self._store, name)(*arguments)


for _name in ArtifactStore.__abstractmethods__:
    setattr(WrappedStore, _name, _handed_on(_name))
WrappedStore.__abstractmethods__ = frozenset()
