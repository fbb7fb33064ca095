"""Who takes a connection, when another process could; the test is the other process."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from runner_children import wait_until

from service.app import create_app
from service.cli.processes.open_connections import OpenConnections
from service.cli.processes.sharing_server import SharingServer
from service.settings import Settings

OURS, THEIRS = 0, 1
LONG = 60.0


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.fixture
def table() -> OpenConnections:
    return OpenConnections.of(2)


@contextmanager
def serving(
    folder: Path, listener: socket.socket, table: OpenConnections, pause: float
) -> Iterator[None]:
    app = create_app(Settings(_env_file=None, data_dir=folder, device="cpu", workers=0))
    server = SharingServer(app, place=OURS, table=table, pause_seconds=pause)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener.dup()]})
    thread.start()
    try:
        assert wait_until(lambda: server.started and table.least() == 0, seconds=60)
        yield
    finally:
        server.should_exit = True
        thread.join()


def asked(listener: socket.socket) -> httpx.Client:
    """Return a client that holds a connection on which it was answered."""
    port = listener.getsockname()[1]
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=10)
    assert client.get("/healthz").status_code == httpx.codes.OK
    return client


def test_it_takes_all_where_no_other_process_holds_fewer(tmp_path, listener, table) -> None:
    table.hold(THEIRS, 3)
    with serving(tmp_path, listener, table, LONG):
        clients = [asked(listener) for _ in range(4)]
        for client in clients:
            client.close()


def test_it_leaves_one_to_the_process_that_holds_fewer(tmp_path, listener, table) -> None:
    table.hold(THEIRS, 0)
    with (
        serving(tmp_path, listener, table, LONG),
        closing(asked(listener)),
        socket.create_connection(listener.getsockname()),
    ):
        assert select.select([listener], [], [], 10)[0]
        taken, _ = listener.accept()
        taken.close()


def test_it_takes_what_the_other_process_does_not(tmp_path, listener, table) -> None:
    table.hold(THEIRS, 0)
    with serving(tmp_path, listener, table, 0.01):
        clients = [asked(listener) for _ in range(3)]
        table.leave(THEIRS)
        assert wait_until(lambda: table.least() == 3)
        for client in clients:
            client.close()
        assert wait_until(lambda: table.least() == 0)
