"""How much may wait: rows until they run, bytes until they are answered."""

import asyncio

import pytest
from batch_requests import Futures
from hypothesis import given
from hypothesis import strategies as st

from service.errors import TooManyRequests
from service.runner.queue_bounds import QueueBounds


def requests(sizes):
    """Return requests of so many rows and bytes."""

    async def made():
        return [Futures().request(bytes(size), n_rows=n_rows) for n_rows, size in sizes]

    return asyncio.run(made())


@given(sizes=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), max_size=20))
def test_no_more_waits_than_may_unless_it_is_one_request(sizes):
    bounds = QueueBounds(max_rows=12, max_bytes=20)
    there = []
    for request in requests(sizes):
        try:
            bounds.enter(request)
        except TooManyRequests as error:
            assert 1 <= error.retry_after <= 60  # noqa: PT017 - to be refused is one of two ways
            rows = sum(other.n_rows for other in (*there, request))
            size = sum(len(other.body) for other in (*there, request))
            assert there
            assert rows > 12 or size > 20
            # One that leaves makes room.
            gone = there.pop()
            bounds.leave([gone], 0.0)
            bounds.end(gone)
        else:
            there.append(request)
        assert sum(request.n_rows for request in there) <= 12
        assert sum(len(request.body) for request in there) <= 20
    for request in there:
        bounds.leave([request], 0.0)
        bounds.end(request)
    (large,) = requests([(1000, 1000)])
    bounds.enter(large)


def test_what_runs_is_held_but_does_not_wait():
    waited = []
    bounds = QueueBounds(max_rows=5, max_bytes=100, waited=waited.extend)
    first, second, third, fourth = requests([(5, 60), (5, 30), (1, 1), (1, 60)])
    first.arrived = 1.0
    bounds.enter(first)
    with pytest.raises(TooManyRequests, match="5 rows"):
        bounds.enter(second)
    bounds.leave([first], 3.0)
    assert waited == [2.0]
    bounds.enter(second)
    bounds.leave([second], 3.0)
    bounds.enter(third)
    with pytest.raises(TooManyRequests, match="91 bytes"):
        bounds.enter(fourth)
    bounds.end(first)
    bounds.enter(fourth)


def test_when_to_come_again_follows_from_how_fast_rows_are_answered():
    bounds = QueueBounds(max_rows=100, max_bytes=10**6)
    waiting, more = requests([(100, 1), (1, 1)])
    bounds.enter(waiting)
    with pytest.raises(TooManyRequests) as slow:
        bounds.enter(more)
    for tenth in range(50):
        bounds.served(10, 1000.0 + tenth / 10)
    with pytest.raises(TooManyRequests) as fast:
        bounds.enter(more)
    assert (slow.value.retry_after, fast.value.retry_after) == (60, 1)
