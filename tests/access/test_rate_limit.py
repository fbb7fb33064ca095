"""A window lets as much pass as its limit; a refused tenant learns how long to wait."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.access.rate_limits import ROWS, RateLimit, RateLimitKind
from service.errors import RowLimitReached, TooManyRequests

A_SECOND = RateLimitKind("requests", 1, "second", RowLimitReached)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def refused_for(limit: RateLimit, cost: int) -> int:
    """Return after how many seconds to try again; 0 if the cost passes now."""
    try:
        limit.take(cost)
    except TooManyRequests as error:
        return error.retry_after
    return 0


def passes(limit: RateLimit, cost: int = 1) -> bool:
    return refused_for(limit, cost) == 0


@pytest.mark.parametrize(("amount", "cost"), [(500, 7), (1, 1)])
def test_of_a_flood_as_much_passes_as_the_limit(clock: Clock, amount: int, cost: int) -> None:
    limit = RateLimit(A_SECOND, amount, clock)
    in_seconds = [0] * 10
    for _ in range(10 * 1000):
        if passes(limit, cost):
            in_seconds[int(clock.now) - 1000] += cost
        clock.now += 0.001
    assert max(in_seconds) <= amount
    assert sum(in_seconds) >= (amount - cost) * len(in_seconds) * 0.8


def test_no_burst_at_a_boundary_passes_twice_the_limit(clock: Clock) -> None:
    limit = RateLimit(A_SECOND, 100, clock)
    clock.now = 1000.999
    assert sum(passes(limit) for _ in range(200)) == 100
    clock.now = 1001.001
    assert sum(passes(limit) for _ in range(200)) <= 1


def test_the_last_of_a_limit_may_be_used_and_a_guess_is_corrected(clock: Clock) -> None:
    limit = RateLimit(ROWS, 120, clock)
    window = limit.take(100)
    limit.adjust(taken=100, used=10, window=window)
    limit.take(110)
    assert limit.remaining() == 0
    with pytest.raises(RowLimitReached):
        limit.check_available()
    late = RateLimit(ROWS, 100, clock)
    late.adjust(taken=0, used=150)
    assert not passes(late)


def test_a_cost_beyond_the_limit_passes_once_and_counts_for_later_windows(clock: Clock) -> None:
    limit = RateLimit(A_SECOND, 100, clock)
    limit.take(250)
    n_passed = 0
    for _ in range(10_000):
        n_passed += passes(limit)
        clock.now += 0.001
    # Of eleven windows, two and a half are paid to the first request.
    assert 700 <= n_passed <= 10 * 100 + 100 - 250


@given(guess=st.integers(1, 5000), later=st.floats(0, 5), others=st.sampled_from([0, 1, 500, 2000]))
@example(guess=5000, later=0.0, others=0)
@example(guess=900, later=1.9, others=2000)
def test_a_corrected_guess_lets_no_more_than_the_limit_pass(guess, later, others) -> None:
    clock = Clock()
    limit = RateLimit(A_SECOND, 1000, clock)
    window = limit.take(guess)
    clock.now += later
    passed = sum(passes(limit) for _ in range(others))
    limit.adjust(taken=guess, used=1, window=window)
    assert passed + sum(passes(limit) for _ in range(3000)) <= 1000


COSTS = st.sampled_from([1, 30, 99, 100, 350])


@given(st.lists(st.tuples(COSTS, st.floats(0, 50)), min_size=1, max_size=4), st.integers(1, 100))
def test_retry_after_is_when_there_is_room_again(taken, wanted: int) -> None:
    clock = Clock()
    limit = RateLimit(ROWS, 100, clock)
    for cost, pause in taken:
        passes(limit, cost)
        clock.now += pause
    seconds = refused_for(limit, wanted)
    if seconds:
        clock.now += seconds - 1.001
        assert seconds == 1 or not passes(limit, wanted)
        clock.now += 1.002
        limit.take(wanted)
