"""Of several who share the queue, one that floods it leaves room for all others."""

import asyncio

import pytest
from batch_requests import Futures

from service.errors import QueueShareTaken, TooManyRequests
from service.http.connection_limits import BodyBudget
from service.runner.predict_requests import QueueShare
from service.runner.queue_bounds import QueueBounds


def fill(bounds: QueueBounds, share: QueueShare | None, *, n_rows: int = 1, size: int = 0) -> list:
    """Put requests in the queue until one is refused; return those that are there."""

    async def filled() -> list:
        there = []
        while True:
            request = Futures().request(bytes(size), n_rows=n_rows)
            request.share = share
            try:
                bounds.enter(request)
            except TooManyRequests:
                return there
            there.append(request)

    return asyncio.run(filled())


@pytest.mark.parametrize("of", ["rows", "bytes"])
def test_each_has_as_much_as_it_leaves_free(of: str) -> None:
    costs = {"n_rows": 1, "size": 0} if of == "rows" else {"n_rows": 0, "size": 1}
    bounds = QueueBounds(max_rows=900, max_bytes=900)
    shares = [QueueShare() for _ in range(3)]
    counts = [len(fill(bounds, share, **costs)) for share in shares]
    assert counts == [450, 225, 113]  # the last may pass the half by the one that it begins with
    assert [getattr(share, of) for share in shares] == counts


def test_who_does_not_share_has_all_of_it() -> None:
    assert len(fill(QueueBounds(max_rows=100, max_bytes=100), None)) == 100


def test_what_leaves_is_room_for_its_owner_again() -> None:
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
    assert (share.rows, share.bytes) == (0, 0)
    assert len(fill(bounds, share, size=3)) == 5


def test_one_request_of_each_may_wait_however_large() -> None:
    bounds = QueueBounds(max_rows=10, max_bytes=100)
    assert len(fill(bounds, QueueShare(), n_rows=6)) == 1
    assert len(fill(bounds, QueueShare(), n_rows=4)) == 1


def test_bodies_that_are_received_are_shared_alike() -> None:
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


def test_a_request_of_more_rows_than_there_is_room_for_leaves_room_for_others() -> None:
    """How many rows a body has is a guess by its length: nobody else may be refused for it."""
    bounds = QueueBounds(max_rows=10, max_bytes=100)
    there = fill(bounds, QueueShare(), n_rows=1_000_000, size=90)
    assert len(there) == 1
    assert len(fill(bounds, QueueShare())) > 0
    bounds.leave(there, 0.0)
    bounds.end(there[0])
    assert (there[0].share.rows, there[0].share.bytes) == (0, 0)
