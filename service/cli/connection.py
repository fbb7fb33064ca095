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

import httpx

from service.cli.failure import CommandFailed
from service.cli.given_settings import given_settings, prepare
from service.cli.server import Server
from service.client.connection import headers_of
from service.log_lines import configure_logging
from service.settings import Settings

TIMEOUT_SECONDS = 60.0
START_SECONDS = 60.0


@contextmanager
def connect(url: str | None, *, settings: Settings | None = None) -> Iterator[httpx.Client]:
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
    settings = settings or given_settings()
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
    settings: Settings, *, uds: str | None = None, sockets: list[socket.socket] | None = None
) -> Iterator[None]:
    """Run the service in a thread of this process until the block ends."""
    from service.app import create_app  # noqa: PLC0415 - takes a second

    # Who talks to it ends it: nobody else has to be waited for.
    app = create_app(settings, keyless=uds is not None)
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
    server: Server, thread: threading.Thread, failures: list[BaseException]
) -> None:
    until = time.monotonic() + START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > until:
            reason = failures[0] if failures else "see the log above"
            raise CommandFailed(f"the service did not start: {reason}")
        time.sleep(0.01)
