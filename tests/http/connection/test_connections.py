"""Limits of headers and bodies on connections; longer headers are in tests/hostile."""

import asyncio

import pytest
from fed_connections import Recorder, Transport, our_connection
from hot_fronts import MAX_BODY_BYTES, hot_front, post, request
from runner_children import wait_until
from uvicorn.config import Config
from uvicorn.server import ServerState

import service.http.connection

HEADER_BYTES = 4000
MOST_HEADERS = 128
RECEIVING_BYTES = 2 * MAX_BODY_BYTES


@pytest.fixture(scope="module")
def bounded():
    limits = {"max_header_bytes": HEADER_BYTES, "max_receiving_bytes": RECEIVING_BYTES}
    with hot_front(**limits) as running:
        yield running


def with_header_bytes(n_bytes: int) -> bytes:
    """Return a request whose line and headers together have so many bytes."""
    return post("/predict", X_Long="x" * (n_bytes - len(post("/predict", X_Long=""))))


def with_headers(n_headers: int) -> bytes:
    """Return a request with so many headers; each request has two."""
    return post("/predict", **{f"X_{n}": "" for n in range(n_headers - 2)})


def test_headers_up_to_the_limit_are_accepted(bounded) -> None:
    sent = with_header_bytes(HEADER_BYTES)
    with bounded.connect() as connection:
        for n_pieces in (1, 3, 50, 1):
            size = -(-len(sent) // n_pieces)
            for start in range(0, len(sent), size):
                connection.send(sent[start : start + size])
            assert connection.answer().status == 200
        connection.send(with_headers(MOST_HEADERS))
        assert connection.answer().status == 200


@pytest.mark.parametrize("before", [b"", post("/predict?later"), post("/ordinary/a")])
def test_a_malformed_request_is_refused_after_earlier_answers(bounded, before) -> None:
    with bounded.connect() as connection:
        connection.send(before + b"nonsense\r\n\r\n")
        if before:
            assert connection.answer().status == 200
        answer = connection.answer()
        assert (answer.status, answer.headers["connection"]) == (400, "close")
        assert answer.json()["type"] == "urn:howsure:problem:malformed-request"
        assert connection.is_ended()


def test_trailers_are_no_headers(bounded) -> None:
    sent = request("POST", "/predict", b"3\r\nabc\r\n0\r\nx-t: t\r\n", Transfer_Encoding="chunked")
    with bounded.connect() as connection:
        connection.send(sent + b"\r\n")
        assert connection.answer().json()["headers"] == ["host", "transfer-encoding"]


def test_bodies_beyond_what_may_be_received_at_once_are_refused(bounded) -> None:
    begun, budget = post("/predict?x", b"x" * MAX_BODY_BYTES), bounded.front.receiving
    with bounded.connect() as one, bounded.connect() as two, bounded.connect() as three:
        for connection in (one, two):
            connection.send(begun[:-1])
        assert wait_until(lambda: budget.taken == RECEIVING_BYTES)
        three.send(post("/ordinary/a") + post("/predict?x", b"x" * 2000)[:-1000])
        assert three.answer().status == 200
        answer = three.answer()
        assert (answer.status, answer.headers["connection"]) == (429, "close")
        assert answer.json()["refused"] == "too-many-requests"
        # A body that comes at once takes no room.
        assert bounded.answer_to(post("/predict", b"x" * 100)).status == 200
        for connection in (one, two):
            connection.send(begun[-1:])
            assert connection.answer().status == 200
    assert budget.taken == 0


def test_a_client_that_does_not_read_gets_no_further_answers(bounded) -> None:
    n_asked = 200
    with bounded.connect() as connection:
        begun = bounded.hot.n_begun
        connection.send(post("/predict?big=300000") * n_asked)
        bounded.hot.wait_for("big=300000")
        with bounded.connect() as other:
            for _ in range(20):
                other.send(post("/predict?later"))
                assert other.answer().status == 200
        assert bounded.hot.n_begun - 20 - begun < 60
        for _ in range(n_asked):
            assert len(connection.answer().body) == 300_000


def fed(data: bytes, n_turns: int) -> tuple[Recorder, int]:
    """Return what is read of data, and how many requests of it at once."""
    recorder = Recorder()

    async def feed() -> int:
        config = Config(recorder, log_config=None, access_log=False, lifespan="off", ws="none")
        config.load()
        protocol = our_connection(recorder, asyncio.Event())(config, ServerState(), {})
        protocol.connection_made(Transport())
        protocol.data_received(data)
        n_at_once = len(recorder.seen)
        for _ in range(n_turns):
            await asyncio.sleep(0)
        return n_at_once

    return recorder, asyncio.run(feed())


@pytest.mark.parametrize("target", ["/predict?a", "/ordinary"])
def test_a_body_in_many_chunks_takes_turns_with_everything_else(monkeypatch, target) -> None:
    monkeypatch.setattr(service.http.connection, "TURN_SECONDS", -1.0)
    body = b"1\r\nx\r\n" * 12_000 + b"0\r\n\r\n"
    recorder, n_at_once = fed(
        request("POST", target, body, Transfer_Encoding="chunked") + post(target, b"b"), 100
    )
    assert n_at_once == 0
    assert recorder.seen == [(target.encode(), b"x" * 12_000), (target.encode(), b"b")]


def test_a_body_of_tiny_chunks_is_refused(bounded) -> None:
    body = b"1\r\nx\r\n" * 30_000
    with bounded.connect() as connection:
        connection.send(request("POST", "/ordinary/a", body, Transfer_Encoding="chunked"))
        assert connection.answer().status == 431


@pytest.mark.parametrize("n_bytes", [10, 3000])
def test_a_request_that_began_behind_others_is_read_to_its_end(bounded, n_bytes) -> None:
    last = post("/predict?last")
    with bounded.connect() as connection:
        answered = post("/ordinary/a") + post("/predict?a", b"x" * n_bytes)
        connection.send(answered + last[:-5])
        for _ in range(2):
            assert connection.answer().status == 200
        connection.send(last[-5:])
        assert connection.answer().status == 200
