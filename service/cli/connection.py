"""A connection to the service: one that runs elsewhere, or one started in this process."""

import logging
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from howsure.client import Client
from howsure.client.request import Answer, Request
from howsure.client.transport import TIMEOUT_SECONDS, headers_of, run_blocking
from service.cli.failure import CommandFailed
from service.cli.local import load_settings, prepare
from service.settings import Settings

if TYPE_CHECKING:
    from service.cli.server import Server
    from service.runner.spawner import StartChild

START_SECONDS = 60.0


class ServiceClient(Client):
    """A client that also sends requests and saves bodies, for commands that show more of them."""

    def send(self, request: Request) -> Answer:
        """Send a request and return its answer."""
        return run_blocking(self._methods.sender.send(request))

    def download(self, request: Request, to: Path | None) -> tuple[Path, Answer]:
        """Write a body to a file, by default of the name that the service gives it."""
        return run_blocking(self._methods.sender.download(request, to))


@contextmanager
def service_client(url: str | None) -> Iterator[ServiceClient]:
    """Yield a client of the service at ``url``, or of one embedded in this process.

    Raises
    ------
    CommandFailed
        If an argument is one that the client refuses, such as a folder without files.
    """
    with connect(url) as http:
        try:
            yield ServiceClient(http=http, retries=0)
        except ValueError as error:
            raise CommandFailed(str(error)) from error


@contextmanager
def connect(url: str | None) -> Iterator[httpx.Client]:
    """Yield a client of the service at ``url``, or of one embedded in this process.

    The embedded one works on the same database and files as `howsure serve` would from here, and
    speaks HTTP over a socket that only this user can reach: both ways take the same path.
    """
    if url is not None:
        with httpx.Client(
            base_url=url, headers=headers_of(None), timeout=TIMEOUT_SECONDS
        ) as client:
            yield client
        return
    from service.startup import configure_logging

    settings = load_settings()
    prepare(settings)
    configure_logging(settings.log_format, level=logging.WARNING)
    folder = Path(tempfile.mkdtemp(prefix="howsure-"))
    try:
        address = str(folder / "http.sock")
        with (
            running(settings, uds=address),
            httpx.Client(
                transport=httpx.HTTPTransport(uds=address),
                base_url="http://howsure",
                headers=headers_of(None),
                timeout=TIMEOUT_SECONDS,
            ) as client,
        ):
            yield client
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(
    settings: Settings,
    *,
    uds: str | None = None,
    sockets: list[socket.socket] | None = None,
    start_child: "StartChild | None" = None,
) -> Iterator[None]:
    """Run the service in a thread of this process until the block ends."""
    from service.app import create_app
    from service.cli.server import Server
    from service.runner.process import RunnerProcess

    start_child = start_child or RunnerProcess.start
    app = create_app(settings, keyless=uds is not None, start_child=start_child)
    # The only client ends the service, so no other client needs time to drain.
    server = Server(app, uds=uds, drain_seconds=0.0)
    failures: list[BaseException] = []

    def serve() -> None:
        try:
            server.run(sockets=sockets)
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits below
            failures.append(error)

    thread = threading.Thread(target=serve, name="service", daemon=True)
    thread.start()
    try:
        _wait_until_started(server, thread, failures)
        yield
    finally:
        server.should_exit = True
        thread.join()


def _wait_until_started(
    server: "Server", thread: threading.Thread, failures: list[BaseException]
) -> None:
    until = time.monotonic() + START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > until:
            # uvicorn logs why an application does not start, and exits.
            is_said = failures and not isinstance(failures[0], SystemExit)
            reason = failures[0] if is_said else "see the log above"
            raise CommandFailed(f"the service did not start: {reason}")
        time.sleep(0.01)
