"""Large prediction bodies, which are received past the parser into memory of their own."""

import asyncio
import gc
import hashlib
import mmap
import random
import weakref

import pytest
from hot_fronts import MAX_BODY_BYTES, hot_front, post
from runner_children import wait_until

import service.cli.server
import service.http.request_reader
from service.http.request_reader import LARGE_BODY_BYTES

MOST_BYTES = 3 * LARGE_BODY_BYTES
BODY = random.Random(0).randbytes(MOST_BYTES)
DIGEST = hashlib.sha256(BODY).hexdigest()


class WatchedMemory(mmap.mmap):
    """Memory of a body, of which the test sees when it is freed."""


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def front(request):
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "asyncio":
            patch.setattr(service.cli.server, "new_event_loop", asyncio.new_event_loop)
        limits = {"min_bytes_per_second": 1000, "window_seconds": 0.3}
        with hot_front(max_body_bytes=MOST_BYTES, **limits) as running:
            yield running


@pytest.fixture
def memories(monkeypatch):
    """The memory of all bodies that has not been freed, without the help of garbage collection."""
    memories = weakref.WeakSet()

    def watched(size: int) -> mmap.mmap:
        memory = WatchedMemory(-1, size)
        memories.add(memory)
        return memory

    monkeypatch.setattr(service.http.request_reader, "untouched_memory", watched)
    gc.disable()
    yield memories
    gc.enable()


@pytest.mark.parametrize("size", [999, 70_001, MOST_BYTES])
@pytest.mark.parametrize("n_before", [0, 1])
def test_a_body_in_odd_pieces_and_the_requests_around_it(front, size, n_before) -> None:
    head = post("/predict?digest", BODY)[: -len(BODY)]
    sent = post("/predict?later") * n_before + head + BODY + post("/predict?a", b"ab")
    sent += post("/ordinary/a", b"abc") + post("/predict?digest", BODY)
    with front.connect() as connection:
        for start in range(0, len(sent), size):
            connection.send(sent[start : start + size])
        for _ in range(n_before):
            assert connection.answer().status == 200
        assert connection.answer().json() == DIGEST
        assert connection.answer().json()["bytes"] == 2
        assert connection.answer().json() == {"ordinary": "a", "bytes": 3}
        assert connection.answer().json() == DIGEST


def test_a_client_that_waits_for_each_answer(front) -> None:
    with front.connect() as connection:
        for size in (LARGE_BODY_BYTES, MAX_BODY_BYTES, LARGE_BODY_BYTES - 1, MOST_BYTES):
            connection.send(post("/predict?digest", BODY[:size]))
            assert connection.answer().json() == hashlib.sha256(BODY[:size]).hexdigest()


def test_the_last_request_of_a_connection(front) -> None:
    sent = post("/predict?digest", BODY, Connection="close") + post("/predict?b") + b"nonsense"
    with front.connect() as connection:
        connection.send(sent)
        assert connection.answer().json() == DIGEST
        assert connection.is_ended()


def test_a_body_that_waits_for_continue(front) -> None:
    sent = post("/predict?digest", BODY, Expect="100-continue")
    with front.connect() as connection:
        connection.send(sent[: -len(BODY)])
        assert connection.answer().status == 100
        connection.send(BODY)
        assert connection.answer().json() == DIGEST


def test_the_memory_of_a_body_is_freed_when_the_client_leaves(front, memories) -> None:
    with front.connect() as connection:
        connection.send(post("/predict?digest", BODY)[:-1])
        assert wait_until(lambda: len(memories) == 1)
        assert wait_until(lambda: front.front.receiving.taken == MOST_BYTES)
    assert front.hot.broken_off.get(timeout=10) == "/predict"
    assert wait_until(lambda: not memories)
    assert front.front.receiving.taken == 0


def test_a_body_that_stops_is_refused_and_its_memory_freed(front, memories) -> None:
    with front.connect() as connection:
        connection.send(post("/predict?digest", BODY)[:-1000])
        answer = connection.answer()
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert not memories
        assert front.front.receiving.taken == 0
        connection.send(BODY[-1000:] + post("/predict?a"))
        assert connection.is_ended()


def test_a_body_over_the_limit_is_refused_at_its_head(front, memories) -> None:
    with front.connect() as connection:
        connection.send(post("/predict", BODY + b"x")[: -len(BODY)])
        answer = connection.answer()
        assert (answer.status, answer.headers["connection"]) == (413, "close")
    assert not memories


def test_the_memory_of_a_body_is_freed_after_its_answer(front, memories) -> None:
    with front.connect() as connection:
        connection.send(post("/predict?digest", BODY))
        assert connection.answer().json() == DIGEST
        assert wait_until(lambda: not memories)
