"""A request that offers an upgrade is read as any other."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from fed_connections import FedConnection, FedServer
from hot_fronts import post

UPGRADE = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c"}
# A body that would be a request of its own.
INNER = b"GET /ordinary/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def connection() -> Iterator[FedConnection]:
    with closing(FedServer()) as server:
        yield server.connect()


@pytest.mark.parametrize("target", ["/predict?q", "/ordinary/a"])
@pytest.mark.parametrize(
    ("missing", "protocol"), [(1, "h2c"), (7, "websocket"), (len(INNER), "TLS/1.0")]
)
def test_the_body_of_an_upgrade_reaches_the_route(connection, target, missing, protocol) -> None:
    sent = post(target, INNER, **UPGRADE | {"Upgrade": protocol})
    connection.send(sent[:-missing])
    connection.send(sent[-missing:])
    answer = connection.answer()
    assert (answer.status, answer.json()["bytes"]) == (200, len(INNER))
    connection.send(post("/ordinary/b", b"xy"))
    assert connection.answer().json() == {"ordinary": "b", "bytes": 2}


def test_expect_100_continue_is_answered(connection) -> None:
    sent = post("/predict?q", b"xyz", Expect="100-continue", **UPGRADE)
    connection.send(sent[:-3])
    assert connection.answer().status == 100
    connection.send(sent[-3:])
    assert connection.answer().json()["bytes"] == 3


def test_a_body_longer_than_it_says_is_the_next_request(connection) -> None:
    connection.send(post("/ordinary/a", b"xy", **UPGRADE) + b"z")
    assert connection.answer().json()["bytes"] == 2
    connection.send(b"z\r\n\r\n")
    assert connection.answer().status == 400
