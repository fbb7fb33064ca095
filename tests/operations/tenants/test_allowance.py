"""What is let through in any window is what may be, and a little more; who is refused may wait."""

import time
import uuid

import pytest
from limits import RateLimitItem, RateLimitItemPerMinute, RateLimitItemPerSecond
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from service.errors import RowLimitReached, TooManyRequests
from service.operations.tenants.allowance import Allowance, seconds_until_room
from service.operations.tenants.meters import ROWS


def allowance(limit: RateLimitItem) -> Allowance:
    return Allowance(ROWS, limit, uuid.uuid4(), SlidingWindowCounterRateLimiter(MemoryStorage()))


def taken(found: Allowance, *, seconds: float, cost: int = 1) -> list[float]:
    """Ask as fast as this machine can; return when it was let through."""
    times, until = [], time.time() + seconds
    while time.time() < until:
        try:
            found.take(cost)
        except TooManyRequests:
            continue
        times.append(time.time())
    return times


@pytest.mark.parametrize(("amount", "cost"), [(10, 1), (500, 7)])
def test_of_a_flood_as_much_passes_as_may(amount: int, cost: int) -> None:
    """In seconds as the clock has them: what is drawn is counted there, a window that slides."""
    times = taken(allowance(RateLimitItemPerSecond(amount)), seconds=3.1, cost=cost)
    assert amount * 2 <= cost * len(times) <= amount * (3.1 + 1) * 1.02 + cost
    in_seconds = dict.fromkeys(map(int, times), 0)
    for moment in times:
        in_seconds[int(moment)] += cost
    assert max(in_seconds.values()) <= amount * 1.02 + cost


def test_a_little_is_asked_of_the_limiter_at_a_time() -> None:
    found = allowance(RateLimitItemPerMinute(5000))
    asked = []
    hit = found._limiter.hit
    found._limiter.hit = lambda *given, cost: asked.append(cost) or hit(*given, cost=cost)
    for _ in range(1000):
        found.take()
    assert asked == [100] * 10
    for _ in range(4000):
        found.take()
    n_asked = len(asked)
    began = time.monotonic()
    n_refused = 0
    while time.monotonic() < began + 0.05:
        with pytest.raises(RowLimitReached):
            found.take()
        n_refused += 1
    assert n_refused > 100
    assert len(asked) - n_asked <= 2  # once with the usual draw, once with what is needed


def test_the_last_of_a_limit_may_be_used() -> None:
    found = allowance(RateLimitItemPerMinute(120))
    for _ in range(120):
        found.take()
    assert found.remaining() == 0
    with pytest.raises(RowLimitReached):
        found.require_some()


def test_what_costs_more_than_the_limit_passes_once_and_is_paid_for() -> None:
    found = allowance(RateLimitItemPerMinute(100))
    found.take(250)
    with pytest.raises(RowLimitReached) as refused:
        found.take()
    assert refused.value.retry_after > 1
    assert found.remaining() == 0


def test_a_guess_is_corrected() -> None:
    found = allowance(RateLimitItemPerMinute(100))
    found.take(80)
    found.settle(taken=80, used=10)
    found.take(90)
    with pytest.raises(RowLimitReached):
        found.take()
    late = allowance(RateLimitItemPerMinute(100))
    late.settle(taken=0, used=150)
    with pytest.raises(RowLimitReached):
        late.take()


def test_who_is_refused_is_told_what_and_how_long() -> None:
    found = allowance(RateLimitItemPerMinute(10))
    found.take(10)
    with pytest.raises(RowLimitReached, match="10 rows a minute") as refused:
        found.take(5)
    assert 1 <= refused.value.retry_after <= 120
    quota = refused.value.quota
    assert quota is not None
    assert (quota.name, quota.amount, quota.seconds) == ("rows", 10, 60)


@pytest.mark.parametrize("wanted", [1, 30, 100])
@pytest.mark.parametrize(("before", "current"), [(0, 100), (80, 40), (100, 0), (100, 99), (3, 3)])
def test_after_the_time_that_is_told_there_is_room_and_not_long_before(
    wanted: int, before: int, current: int
) -> None:
    """By the definition of the window that slides, a second at a time."""
    left, window, amount = 25.0, 60.0, 100

    def is_room(seconds: float) -> bool:
        if seconds < left:
            weighted = before * (left - seconds) / window + current
        else:
            weighted = current * max(0.0, window - (seconds - left)) / window
        return weighted + wanted <= amount + 1e-9

    told = seconds_until_room(
        wanted, amount, window=window, before=before, current=current, left=left
    )
    assert is_room(told)
    assert told == 0 or not is_room(told - 0.1)
