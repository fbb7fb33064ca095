"""No request fails because the server is told to stop."""

import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest
from databases import put_sqlite_file
from forked_children import SERVER
from hot_fronts import hot_front, post
from runner_children import wait_until

from service.app import create_app
from service.cli.server import Server, can_refuse_new
from service.settings import Settings

# Without a socket filter, the kernel resets the connection whose handshake ends last. If the reset
# arrives between two writes, httpx ignores the failed write and reports the end that it reads next.
REFUSALS = {True: (httpx.ConnectError,), False: (httpx.NetworkError, httpx.RemoteProtocolError)}


def ask_until(refusal, address, target: str, answered: threading.Semaphore, *, keeps: bool) -> None:
    """Send request after request on a connection, or each on its own, until nobody listens."""
    headers = {} if keeps else {"Connection": "close"}
    url = "http://{}:{}{}".format(*address, target)
    with httpx.Client(headers=headers) as client, suppress(*refusal):
        while True:
            client.post(url, content=b"x" * 100).raise_for_status()
            answered.release()


FOREVER = 1e6
# Some kernels refuse socket filters to users without privileges.
WITH_FILTERS = pytest.mark.skipif(
    not can_refuse_new(), reason="this kernel refuses socket filters to this user"
)
SOCKET_FILTERS = pytest.mark.parametrize(
    "socket_filters", [pytest.param(True, marks=WITH_FILTERS), False]
)


CLIENTS = [("/predict", False), ("/predict?later", True), ("/ordinary/a", True)]


@SOCKET_FILTERS
@pytest.mark.parametrize(("target", "keeps"), CLIENTS)
def test_clients_without_pauses_are_answered_until_the_end(target, keeps, socket_filters) -> None:
    answered = threading.Semaphore(0)
    options = {"drain_seconds": 0.3, "socket_filters": socket_filters}
    with ThreadPoolExecutor(4) as threads, hot_front(**options) as running:
        arguments = (REFUSALS[socket_filters], running.address, target, answered)
        asking = [threads.submit(ask_until, *arguments, keeps=keeps) for _ in range(4)]
        for _ in range(40):
            answered.acquire()
        running.stop()
        for one in asking:
            one.result()


@SOCKET_FILTERS
def test_requests_during_the_drain_are_answered_and_end_their_connection(socket_filters) -> None:
    with hot_front(drain_seconds=FOREVER, socket_filters=socket_filters) as running:
        with running.connect() as idle, running.connect() as busy:
            for connection in (idle, busy):
                connection.send(post("/predict"))
                assert "connection" not in connection.answer().headers
            busy.send(post("/predict?released") + post("/predict?x"))
            running.hot.wait_for("released")
            running.server.should_exit = True
            assert wait_until(running.front.stopping.is_set)
            with running.connect() as new:
                new.send(post("/ordinary/new"))
                assert new.answer().headers["connection"] == "close"
                assert new.is_ended()
            running.hot.released.set()
            assert busy.answer().headers.get("connection") is None
            answer = busy.answer()
            assert (answer.json()["query"], answer.headers["connection"]) == ("x", "close")
            idle.send(post("/predict"))
            assert idle.answer().headers["connection"] == "close"
            assert idle.is_ended()
        # The last connection has ended. A load balancer may still open others.
        running.thread.join(0.2)
        assert running.thread.is_alive()
        running.server.handle_exit(signal.SIGINT, None)


@pytest.mark.parametrize(("target", "missing"), [("/predict?x", 1), ("/ordinary/a", 30)])
def test_a_half_received_request_is_answered(target, missing) -> None:
    sent = post(target, b"xy")
    with hot_front() as running, running.connect() as connection:
        connection.send(sent[:-missing])
        connections = running.server.server_state.connections
        assert wait_until(lambda: any(one.reader.is_receiving() for one in tuple(connections)))
        running.server.should_exit = True
        assert wait_until(lambda: not any(one.is_serving() for one in running.server.servers))
        connection.send(sent[-missing:])
        answer = connection.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")


def test_a_stopping_service_is_alive_and_not_ready(tmp_path) -> None:
    settings = Settings(data_dir=tmp_path, device="cpu", workers=0, _env_file=None)
    put_sqlite_file(settings.resolved_database_url())
    app = create_app(settings, start_child=SERVER.start_child)
    server, listener = Server(app, drain_seconds=FOREVER), socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    with httpx.Client(base_url="http://{}:{}".format(*listener.getsockname())) as client:
        paths = ("/readyz", "/v2/health/ready", "/healthz")
        assert [client.get(path).status_code for path in paths] == [200, 200, 200]
        server.should_exit = True
        assert wait_until(app.state.stopping.is_set)
        assert [client.get(path).status_code for path in paths] == [503, 503, 200]
    server.handle_exit(signal.SIGINT, None)
    thread.join()
