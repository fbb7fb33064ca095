"""How much may wait: rows until they run, bytes until they are answered, shared by callers."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served_requests import Futures

from service.errors import QueueShareTaken, TooManyRequests
from service.http.connection_limits import BodyBudget
from service.runner.predict_requests import QueueShare
from service.runner.queue_bounds import QueueBounds


def requests(*sizes, share=None):
    """Return requests with so many rows and bytes."""

    async def made():
        return [Futures().request(bytes(size), n_rows=n_rows) for n_rows, size in sizes]

    made_requests = asyncio.run(made())
    for request in made_requests:
        request.share = share
    return made_requests


def refusal(bounds, n_rows=1, size=1):
    """Return the error of a request that does not fit."""
    with pytest.raises(TooManyRequests) as refused:
        bounds.enter(*requests((n_rows, size)))
    return refused.value


def fill(bounds, share, *, n_rows=1, size=0):
    """Put requests in the queue until one is refused; return those that are there."""
    there = []
    while True:
        (request,) = requests((n_rows, size), share=share)
        try:
            bounds.enter(request)
        except TooManyRequests:
            return there
        there.append(request)


def end(bounds, *requests):
    for request in requests:
        bounds.leave([request], 0.0)
        bounds.end(request)


@given(sizes=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), max_size=20))
def test_the_limits_hold_except_for_a_single_request(sizes):
    bounds, there = QueueBounds(max_rows=12, max_bytes=20), []
    for request in requests(*sizes):
        n_rows = sum(other.n_rows for other in (*there, request))
        n_bytes = sum(len(other.body) for other in (*there, request))
        if n_rows <= 12 and n_bytes <= 20:
            bounds.enter(request)
            there.append(request)
        else:
            assert 1 <= refusal(bounds, request.n_rows, len(request.body)).retry_after <= 60
            end(bounds, there.pop())  # one that leaves makes room
    end(bounds, *there)
    bounds.enter(*requests((1000, 1000)))


def test_a_running_request_counts_with_its_bytes_but_not_with_its_rows():
    waited = []
    bounds = QueueBounds(max_rows=5, max_bytes=100, waited=waited.append)
    (first, second) = requests((5, 60), (5, 30))
    first.arrived = 1.0
    bounds.enter(first)
    assert "rows" in refusal(bounds, 5, 30).message
    bounds.leave([first], 3.0)
    assert waited == [2.0]
    bounds.enter(second)
    bounds.leave([second], 3.0)
    bounds.enter(*requests((1, 1)))
    assert "bytes" in refusal(bounds, 1, 60).message
    bounds.end(first)
    bounds.enter(*requests((1, 60)))


def test_retry_after_follows_from_how_fast_rows_are_answered():
    bounds = QueueBounds(max_rows=100, max_bytes=10**6)
    bounds.enter(*requests((100, 1)))
    seconds = [refusal(bounds).retry_after]
    bounds.served(1, 1000.0)
    seconds.append(refusal(bounds).retry_after)
    for tenth in range(50):
        bounds.served(10, 1000.0 + tenth / 10)
    assert [*seconds, refusal(bounds).retry_after] == [5, 60, 1]


@pytest.mark.parametrize("of", ["rows", "bytes"])
def test_each_caller_may_use_as_much_as_it_leaves_free(of):
    costs = {"n_rows": 1, "size": 0} if of == "rows" else {"n_rows": 0, "size": 1}
    bounds = QueueBounds(max_rows=900, max_bytes=900)
    shares = [QueueShare() for _ in range(3)]
    counts = [len(fill(bounds, share, **costs)) for share in shares]
    assert counts == [450, 225, 113]  # the last may exceed the half by its first request
    assert [getattr(share, of) for share in shares] == counts
    # A caller without a share may use all.
    assert len(fill(QueueBounds(max_rows=100, max_bytes=100), None, **costs)) == 100


def test_an_ended_request_makes_room_for_its_caller():
    bounds, share = QueueBounds(max_rows=10, max_bytes=100), QueueShare()
    there = fill(bounds, share, size=3)
    assert len(there) == 5
    bounds.leave(there, 0.0)
    assert (share.rows, share.bytes) == (0, 15)
    bounds.come_back(there[0])
    assert share.rows == 1
    bounds.leave(there[:1], 0.0)
    for request in there:
        bounds.end(request)
    # One request of a caller may wait, however large: its rows are a guess by its length.
    (large,) = fill(bounds, share, n_rows=1_000_000, size=90)
    assert fill(bounds, QueueShare())
    end(bounds, large)
    assert (share.rows, share.bytes) == (0, 0)


def test_bodies_that_are_received_are_shared_alike():
    budget, flooding, other = BodyBudget(100), QueueShare(), QueueShare()
    for _ in range(5):
        budget.take(10, flooding)
    with pytest.raises(QueueShareTaken):
        budget.take(10, flooding)
    budget.take(50, other)
    with pytest.raises(TooManyRequests):
        budget.take(1, QueueShare())
    budget.give_back(50, other)
    budget.give_back(10, flooding)
    budget.take(10, flooding)
    assert (flooding.receiving, other.receiving, budget.taken) == (50, 0, 50)
