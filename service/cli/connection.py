"""A connection to the service: one that runs elsewhere, or one started in this process."""

import logging
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from howsure.client import Calibration, Client
from howsure.client.exports import ExportedModel, export_model
from howsure.client.request import Answer, Request
from howsure.client.transport import headers_of, run_blocking, url_of
from service.cli.failure import EMBEDDED_URL, CommandFailed, remote

if TYPE_CHECKING:
    from service.cli.server import Server
    from service.runner.spawner import StartChild
    from service.settings import Settings

START_SECONDS = 60.0


class ServiceClient(Client):
    """A client that also sends any request and saves any response."""

    def send(self, request: Request) -> Answer:
        """Send a request and return its answer."""
        return run_blocking(self._methods.sender.send(request))

    def download(self, request: Request, to: Path | None) -> tuple[Path, Answer]:
        """Save a response body, by default under the file name that the service gives it."""
        return run_blocking(self._methods.sender.download(request, to))

    def export_model(self, calibration: Calibration, to: Path | None) -> ExportedModel:
        """Write the calibrated model, and files with external weights beside it."""
        return run_blocking(export_model(self._methods.sender, calibration, to))


@dataclass(frozen=True)
class Address:
    """Where a service listens: at a URL, or on a Unix socket."""

    url: str
    uds: str | None = None

    def client(self) -> httpx.Client:
        """Return a new HTTP client."""
        transport = None if self.uds is None else httpx.HTTPTransport(uds=self.uds)
        return httpx.Client(base_url=self.url, headers=headers_of(None), transport=transport)

    def async_client(self) -> httpx.AsyncClient:
        """Return a new HTTP client for asyncio."""
        transport = None if self.uds is None else httpx.AsyncHTTPTransport(uds=self.uds)
        return httpx.AsyncClient(base_url=self.url, headers=headers_of(None), transport=transport)


@contextmanager
def service_client(url: str | None) -> Iterator[ServiceClient]:
    """Yield a client of the service at ``url``, or of one embedded in this process.

    Raises
    ------
    CommandFailed
        If the client refuses an argument, such as a folder without files.
    """
    with service_address(url) as address, address.client() as http:
        try:
            yield ServiceClient(http=http, retries=0)
        except ValueError as error:
            raise CommandFailed(str(error)) from error


@contextmanager
def service_address(url: str | None) -> Iterator[Address]:
    """Yield the address of the service at ``url``, or of one embedded in this process.

    The embedded service uses the same database and files as `howsure serve` would from here. It
    speaks HTTP over a socket that only this user can reach, so both ways take the same path.
    """
    remote.set(url or "")
    if url is not None:
        try:
            address = Address(url_of(url))
        except ValueError as error:
            raise CommandFailed(f"--{error}") from error
        yield address
        return
    # With an address none of this is needed, and it takes longer than the request.
    from service.cli.local import load_settings, prepare
    from service.startup import configure_logging

    settings = load_settings()
    prepare(settings)
    configure_logging(settings.log_format, level=logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="howsure-", ignore_cleanup_errors=True) as folder:
        uds = str(Path(folder, "http.sock"))
        with running(settings, uds=uds):
            yield Address(EMBEDDED_URL, uds)


@contextmanager
def running(
    settings: "Settings",
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
