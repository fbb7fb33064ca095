"""Nothing that was sent fails because the server is told to stop."""

import signal
import threading
import time

import httpx
import pytest
from hot_fronts import Connection, hot_front, post
from served_process import ServedProcess


class Looping:
    """Clients that ask on and on, each on its connection, until nobody listens."""

    def __init__(self, address, target, *, n_clients=4, keeps=True) -> None:
        self.failures: list[Exception] = []
        self.answered = [0] * n_clients
        self.address, self.target, self.keeps = address, target, keeps
        self.threads = [threading.Thread(target=self._ask, args=[n]) for n in range(n_clients)]
        for thread in self.threads:
            thread.start()

    def wait_for(self, n_answers: int) -> None:
        while min(self.answered) < n_answers and not self.failures:
            time.sleep(0.001)

    def join(self) -> None:
        for thread in self.threads:
            thread.join()
        assert self.failures == []

    def _ask(self, n) -> None:
        try:
            while True:
                try:
                    connection = Connection(self.address)
                except ConnectionRefusedError:
                    return
                with connection:
                    self._ask_on(connection, n)
        except (OSError, AssertionError) as error:
            self.failures.append(error)

    def _ask_on(self, connection, n) -> None:
        while True:
            connection.send(post(self.target, b"x" * 100))
            answer = connection.answer()
            assert answer.status == 200
            self.answered[n] += 1
            if not self.keeps or answer.headers.get("connection") == "close":
                return


FOREVER = 1e6
# Some kernels refuse socket filters to users without privileges.
SOCKET_FILTERS = pytest.mark.parametrize("socket_filters", [True, False])


@SOCKET_FILTERS
@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("target", ["/predict", "/predict?later", "/ordinary/a"])
def test_clients_that_never_pause_are_answered_until_the_end(target, keeps, socket_filters) -> None:
    with hot_front(drain_seconds=0.3, socket_filters=socket_filters) as running:
        clients = Looping(running.address, target, keeps=keeps)
        clients.wait_for(20)
        running.stop()
        clients.join()


@SOCKET_FILTERS
def test_requests_while_draining_are_answered_and_end_their_connection(socket_filters) -> None:
    with hot_front(drain_seconds=FOREVER, socket_filters=socket_filters) as running:
        with running.connect() as idle, running.connect() as busy:
            for connection in (idle, busy):
                connection.send(post("/predict"))
                assert "connection" not in connection.answer().headers
            busy.send(post("/predict?released") + post("/predict?x"))
            running.hot.wait_for("released")
            running.server.should_exit = True
            while not running.front.stopping.is_set():
                time.sleep(0.001)
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
        # The last connection has ended: it drains no longer.
        running.thread.join()


@pytest.mark.parametrize("sent", [post("/predict?x", b"xy"), post("/ordinary/a", b"xy")])
@pytest.mark.parametrize("missing", [1, 30])
def test_a_request_half_received_at_the_end_is_answered(sent, missing) -> None:
    with hot_front() as running, running.connect() as connection:
        connection.send(sent[:-missing])
        while not any(one.reader.is_receiving() for one in running.server.server_state.connections):
            time.sleep(0.001)
        running.server.should_exit = True
        while any(server.is_serving() for server in running.server.servers):
            time.sleep(0.001)
        connection.send(sent[-missing:])
        answer = connection.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")


def test_a_process_says_that_it_is_not_ready_while_it_stops(tmp_path) -> None:
    served = ServedProcess(tmp_path)
    with served as client:
        for path in ("/readyz", "/v2/health/ready"):
            assert client.get(path).status_code == 200
        served.process.send_signal(signal.SIGTERM)
        found = _asked_until_refused(client, "/readyz", "/v2/health/ready", "/healthz")
        assert served.process.wait(timeout=20) is not None
    assert found["/readyz"][-1] == found["/v2/health/ready"][-1] == 503
    assert set(found["/healthz"]) == {200}


def _asked_until_refused(client, *paths) -> dict[str, list[int]]:
    found = {path: [] for path in paths}
    try:
        while True:
            for path in paths:
                found[path].append(client.get(path).status_code)
    except httpx.ConnectError:
        return found
