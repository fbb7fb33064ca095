"""An upgrade that the service does not offer changes nothing: the body is a body."""

import time

import pytest
from hot_fronts import hot_front, post, request

UPGRADE = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c"}
# A body that would be a request of its own.
INNER = b"GET /ordinary/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNKS = b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
TARGETS = ["/predict?q", "/ordinary/a"]


@pytest.fixture(scope="module")
def front():
    with hot_front() as running:
        yield running


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("missing", [0, 7, len(INNER)])
@pytest.mark.parametrize("protocol", ["h2c", "websocket", "TLS/1.0"])
def test_its_body_reaches_the_route(front, target, missing, protocol) -> None:
    sent = post(target, INNER, **UPGRADE | {"Upgrade": protocol})
    end = len(sent) - missing
    with front.connect() as connection:
        connection.send(sent[:end])
        if missing:
            time.sleep(0.05)
            connection.send(sent[end:])
        answer = connection.answer()
        assert (answer.status, answer.json()["bytes"]) == (200, len(INNER))
        connection.send(post("/ordinary/b", b"xy"))
        assert connection.answer().json() == {"ordinary": "b", "bytes": 2}


@pytest.mark.parametrize("target", TARGETS)
def test_so_does_one_in_chunks(front, target) -> None:
    with front.connect() as connection:
        connection.send(request("POST", target, CHUNKS, Transfer_Encoding="chunked", **UPGRADE))
        assert connection.answer().json()["bytes"] == 5
        connection.send(post("/predict?z", b"xy"))
        assert connection.answer().json()["bytes"] == 2


def test_the_requests_behind_it_are_answered_in_order(front) -> None:
    asked = [
        request("GET", "/ordinary/a", **UPGRADE),
        post("/predict?1", INNER, **UPGRADE),
        request("POST", "/ordinary/b", CHUNKS, Transfer_Encoding="chunked", **UPGRADE),
        post("/predict?2", b"xyz"),
        post("/predict?3", INNER, **UPGRADE),
    ]
    with front.connect() as connection:
        connection.send(b"".join(asked))
        found = [connection.answer().json() for _ in asked]
    assert [one.get("query", one.get("ordinary")) for one in found] == ["a", "1", "b", "2", "3"]
    assert [one["bytes"] for one in found] == [0, len(INNER), 5, 3, len(INNER)]


def test_whoever_waits_for_continue_is_told_so(front) -> None:
    with front.connect() as connection:
        sent = post("/predict?q", b"xyz", Expect="100-continue", **UPGRADE)
        connection.send(sent[:-3])
        assert connection.answer().status == 100
        connection.send(sent[-3:])
        assert connection.answer().json()["bytes"] == 3


def test_a_body_longer_than_it_says_is_the_next_request(front) -> None:
    with front.connect() as connection:
        connection.send(post("/ordinary/a", b"xy", **UPGRADE) + b"z")
        assert connection.answer().json()["bytes"] == 2
        connection.send(b"z\r\n\r\n")
        assert connection.answer().status == 400
