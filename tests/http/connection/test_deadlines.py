"""Deadlines of connections, with a clock that the test moves."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from fed_connections import FedServer
from hot_fronts import post, request

from service.http.connection_limits import BURST


@pytest.fixture
def serve() -> Iterator[Callable[..., FedServer]]:
    """Return what makes a server with these limits."""
    with ExitStack() as stack:
        yield lambda **limits: stack.enter_context(closing(FedServer(**limits)))


def unfinished(target: str, n_bytes: int) -> bytes:
    """Return the head of a request with so long a body."""
    return post(target, b"x" * n_bytes)[:-n_bytes]


@pytest.mark.parametrize("sent", [b"", b"\r\n"])
def test_a_connection_without_a_request_is_closed(serve, sent) -> None:
    server = serve(header_seconds=2)
    connection = server.connect()
    connection.send(sent)
    server.advance(1.9)
    assert not connection.is_ended()
    server.advance(0.3)
    assert connection.is_ended()
    assert connection.transport.written == b""


@pytest.mark.parametrize(("target", "n_before"), [("/predict", 0), ("/ordinary/a", 1)])
def test_unfinished_headers_are_408(serve, target, n_before) -> None:
    server = serve(header_seconds=2)
    connection = server.connect()
    for _ in range(n_before):
        connection.send(post("/predict"))
        assert connection.answer().status == 200
    connection.send(post(target)[:-2])
    for _ in range(3):
        server.advance(0.6)
        connection.send(b"x: y\r\n")
    assert not connection.is_ended()
    server.advance(0.4)
    answer = connection.answer()
    assert (answer.status, answer.headers["connection"]) == (408, "close")
    assert answer.json()["detail"].startswith("headers:")
    assert connection.is_ended()


# The bytes that come in ten seconds, and what becomes of them.
BODIES = [("/predict", 10_000, 200), ("/predict", 9_000, 408)]
BODIES += [("/ordinary/a", 1_000, 200), ("/ordinary/a", 900, 408)]


@pytest.mark.parametrize(("target", "n_bytes", "status"), BODIES)
def test_a_body_below_the_minimum_rate_is_408(serve, target, n_bytes, status) -> None:
    server = serve(window_seconds=2, min_bytes_per_second=1000, upload_bytes_per_second=100)
    connection = server.connect()
    connection.send(unfinished(target, n_bytes))
    connection.trickle(n_bytes, seconds=10)
    assert connection.answer().status == status
    assert connection.is_ended() == (status == 408)
    assert server.context.receiving.taken == 0


def test_the_body_of_a_prediction_has_a_deadline(serve) -> None:
    server = serve(min_bytes_per_second=10, hot_body_seconds=5)
    connection = server.connect()
    connection.send(unfinished("/predict", 90_000))
    connection.trickle(40_000, seconds=4)
    assert connection.transport.written == b""
    connection.trickle(20_000, seconds=2)
    assert connection.answer().json()["refused"] == "request-timeout"
    assert server.context.receiving.taken == 0


def test_an_answered_client_has_limited_time_to_end_its_body(serve) -> None:
    server = serve(header_seconds=2)
    connection = server.connect()
    connection.send(unfinished("/unread", 1000))
    assert connection.answer().status == 200
    server.advance(1.5)
    connection.send(b"x" * 1000 + post("/predict"))
    assert connection.answer().status == 200
    connection.send(request("POST", "/unread", Transfer_Encoding="chunked"))
    assert connection.answer().status == 200
    for _ in range(30):
        connection.send(b"a\r\n0123456789\r\n" * 1000)
        server.advance(0.1)
    assert connection.is_ended()


def test_a_client_that_reads_nothing_is_disconnected_and_one_that_waits_is_not(serve) -> None:
    limits = ("header_seconds", "window_seconds", "stall_seconds", "keep_alive_seconds")
    server = serve(**dict.fromkeys(limits, 2))
    waiting, stalled = server.connect(), server.connect(is_read=False)
    waiting.send(post("/predict?never"))
    stalled.send(post("/predict"))
    server.advance(1.9)
    assert not stalled.is_ended()
    server.advance(0.4)
    assert stalled.is_ended()
    server.advance(20)
    assert not waiting.is_ended()


@pytest.mark.parametrize(("rate", "is_ended"), [(900, True), (1100, False)])
def test_a_client_that_reads_slowly_is_disconnected(serve, rate, is_ended) -> None:
    server = serve(stall_seconds=2, min_bytes_per_second=1000)
    connection = server.connect(is_read=False)
    connection.send(post("/predict?big=20000"))
    for _ in range(100):
        connection.transport.n_taken += rate // 10
        server.advance(0.1)
    assert connection.is_ended() == is_ended


def test_a_long_download_is_not_slow_reading(serve) -> None:
    """What a client reads of it is written anew, so that as much as before is unread."""
    server = serve(stall_seconds=2, min_bytes_per_second=1000)
    connection = server.connect(is_read=False)
    connection.send(post("/predict?big=70000"))
    for _ in range(10):
        server.run(connection.protocol.pause_writing)
        server.advance(1)
        server.run(connection.protocol.resume_writing)
    assert not connection.is_ended()
    server.advance(2.2)
    assert connection.is_ended()


def test_unread_responses_have_a_limit_together(serve) -> None:
    server = serve(max_unread_bytes=250_000)
    slow = [server.connect(is_read=False) for _ in range(3)]
    for connection in slow:
        connection.send(post("/predict?big=100000"))
        server.advance(0.1)
    assert [connection.is_ended() for connection in slow] == [False, False, True]
    for connection in (slow[0], slow[2]):
        server.run(connection.protocol.connection_lost, None)
    fourth = server.connect(is_read=False)
    fourth.send(post("/predict?big=100000"))
    server.advance(0.1)
    assert not fourth.is_ended()


@pytest.mark.parametrize("target", ["/predict", "/ordinary/a"])
def test_requests_that_come_at_once_are_parsed_when_their_turn_comes(serve, target) -> None:
    """Parsed requests take thirty times the memory of their bytes."""
    connection, n_sent = serve().connect(), 1000
    connection.send(post(target) * n_sent + post(target, b"[1]"))
    answered, longest = 0, 0
    while answered <= n_sent:
        longest = max(longest, len(connection.protocol.queue))
        connection.server.advance(0.1)
        before, answered = answered, connection.transport.written.count(b"HTTP/1.1 200")
        assert answered > before
    assert longest < 100
    for n_bytes in (*[0] * n_sent, 3):
        assert connection.answer().json()["bytes"] == n_bytes


@pytest.mark.parametrize("target", ["/predict", "/ordinary/a"])
def test_an_idle_connection_is_closed_and_a_used_one_is_not(serve, target) -> None:
    server = serve(keep_alive_seconds=2)
    connection = server.connect()
    for _ in range(3):
        connection.send(post(target, b"[1]"))
        assert connection.answer().status == 200
        server.advance(1.9)
        assert not connection.is_ended()
    server.advance(0.3)
    assert connection.is_ended()


def test_clients_without_a_key_take_turns_after_many_answers(serve) -> None:
    server = serve()
    connection = server.connect()
    for _ in range(BURST + 1):
        connection.send(request("GET", "/ordinary/a"))
        assert connection.answer().status == 200
    connection.send(request("GET", "/ordinary/a"))
    assert len(connection.transport.written) == connection.n_read
    server.advance(0.1)
    assert connection.answer().status == 200


def test_the_longest_idle_connection_is_closed_for_a_new_one(serve) -> None:
    """Sooner one that has asked nothing; never one that is owed an answer."""
    owing = serve(max_connections=1).connect()
    owing.send(unfinished("/unread", 1000))
    owing.server.advance(0.1)
    owing.server.connect()
    assert owing.is_ended()  # only the rest of its body was to come
    server = serve(max_connections=4)
    waiting, asked, late, silent = (server.connect() for _ in range(4))
    waiting.send(post("/predict?never"))
    for connection in (asked, late):
        server.advance(0.1)
        connection.send(post("/predict"))
        assert connection.answer().status == 200
    server.advance(0.1)
    for gone in (silent, asked, late):
        newer = server.connect()
        newer.send(post("/predict?never"))
        assert gone.is_ended()
    fifth = server.connect()
    answer = fifth.answer()
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["type"] == "urn:howsure:problem:too-many-connections"
    assert [one.is_ended() for one in (fifth, waiting, newer)] == [True, False, False]
