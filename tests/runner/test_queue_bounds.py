"""How much may wait: rows until they run, bytes until they are answered, shared by tenants."""

import asyncio
import uuid
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served_requests import Futures

from service.errors import ShareTaken, TooManyRequests
from service.runner.queue_bounds import QueueBounds
from service.shared_amounts import Hold, Line, SharedAmount

TENANTS = [uuid.uuid4() for _ in range(3)]


def requests(*sizes, tenant=None):
    """Return requests with so many rows and bytes."""

    async def made():
        return [Futures().request(bytes(size), n_rows=n_rows) for n_rows, size in sizes]

    made_requests = asyncio.run(made())
    for request in made_requests:
        request.holder = tenant
    return made_requests


def refusal(bounds, n_rows=1, size=1):
    """Return the error of a request that does not fit."""
    with pytest.raises(TooManyRequests) as refused:
        bounds.enter(*requests((n_rows, size)))
    return refused.value


def fill(bounds, tenant, *, n_rows=1, size=0):
    """Put requests in the queue until one is refused; return those that are there."""
    there = []
    while True:
        (request,) = requests((n_rows, size), tenant=tenant)
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
def test_each_tenant_may_use_as_much_as_it_leaves_free(of):
    costs = {"n_rows": 1, "size": 0} if of == "rows" else {"n_rows": 0, "size": 1}
    bounds = QueueBounds(max_rows=900, max_bytes=900)
    counts = [len(fill(bounds, tenant, **costs)) for tenant in TENANTS]
    assert counts == [450, 225, 112]
    assert [getattr(bounds, of).held_by(tenant) for tenant in TENANTS] == counts
    # Where no tenants share the queue, all of it may be used.
    assert len(fill(QueueBounds(max_rows=100, max_bytes=100), None, **costs)) == 100


def test_an_ended_request_makes_room_for_its_tenant():
    bounds, tenant = QueueBounds(max_rows=10, max_bytes=100), TENANTS[0]

    def held():
        return bounds.rows.held_by(tenant), bounds.bytes.held_by(tenant)

    there = fill(bounds, tenant, size=3)
    assert len(there) == 5
    bounds.leave(there, 0.0)
    assert held() == (0, 15)
    bounds.come_back(there[0])
    assert held() == (1, 15)
    bounds.leave(there[:1], 0.0)
    for request in there:
        bounds.end(request)
    # One request of a tenant may wait, however large: its rows are a guess by its length.
    (large,) = fill(bounds, tenant, n_rows=1_000_000, size=90)
    assert fill(bounds, TENANTS[1])
    end(bounds, large)
    assert held() == (0, 0)


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(TENANTS), st.integers(0, 3), st.integers(0, 120)), max_size=60
    )
)
def test_what_is_held_follows_from_what_requests_hold(steps):
    """Holds that change, end and are refused leave nothing behind, and nobody takes all."""
    amount = SharedAmount(Line.RECEIVED_BYTES, 100)
    holds = {(tenant, number): Hold(amount, tenant) for tenant in TENANTS for number in range(4)}
    for tenant, number, size in steps:
        with suppress(TooManyRequests):
            holds[tenant, number].change_to(size)
        for each in TENANTS:
            assert amount.held_by(each) == sum(holds[each, which].amount for which in range(4))
            assert amount.held_by(each) <= 50
        assert amount.taken == sum(hold.amount for hold in holds.values()) <= 100
    for hold in holds.values():
        hold.change_to(0)
    assert amount.taken == 0


def test_a_share_that_is_taken_is_told_from_a_limit_that_is_reached():
    amount = SharedAmount(Line.WAITS, 4)
    for tenant, n_taken in ((TENANTS[0], 2), (TENANTS[1], 1)):
        for _ in range(n_taken):
            amount.take(tenant)
        with pytest.raises(ShareTaken, match="`waits`"):
            amount.take(tenant)
    amount.take(TENANTS[2])
    with pytest.raises(TooManyRequests, match=r"limit `waits` is reached: .* 4 of 4"):
        amount.take(uuid.uuid4())
    amount.give_back(TENANTS[0])
    amount.take(uuid.uuid4())
