"""What a tenant may use in a second or a minute, at the cost of a subtraction."""

import math
import time
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from limits import RateLimitItem
from limits.storage import SlidingWindowCounterSupport
from limits.strategies import SlidingWindowCounterRateLimiter

from service.errors import Quota, TooManyRequests

# To ask the limiter takes 10 µs, a fifth of a prediction: so much of a limit is drawn at once.
DRAWN_SHARE = 50
# Of the window: for so long after it said no it is not asked again, however many requests come.
PAUSE_SHARE = 50
LONGEST_PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class AllowanceKind:
    """A limit's name, what it is called in a sentence, and the failure of who is beyond it."""

    name: str
    sentence: str
    error: type[TooManyRequests]


class Allowance:
    """Counts what a tenant uses against one limit; for one event loop.

    What was drawn and not used is good later, so that in no window more than the limit and a
    fiftieth of it is used. What costs more than the whole limit is let through when all of it is
    there, and paid for by the windows that follow.
    """

    __slots__ = ("_closed_until", "_id", "_kind", "_left", "_limiter", "_opens", "limit")

    def __init__(
        self,
        kind: AllowanceKind,
        limit: RateLimitItem,
        tenant_id: UUID,
        limiter: SlidingWindowCounterRateLimiter,
    ) -> None:
        self.limit = limit
        self._kind = kind
        self._id = f"{kind.name}/{tenant_id}"
        self._limiter = limiter
        self._left = 0
        self._closed_until = 0.0
        self._opens = 0.0

    def take(self, cost: int = 1) -> None:
        """Use some of it.

        Raises
        ------
        TooManyRequests
            If that is not left; nothing is used then.
        """
        left = self._left - cost
        if left < 0:
            self._draw(cost)
            left = self._left - cost
        self._left = left

    def require_some(self) -> None:
        """Use nothing, but see to it that there is something.

        Raises
        ------
        TooManyRequests
            If nothing is left.
        """
        if self._left <= 0:
            self._draw(1)

    def settle(self, *, taken: int, used: int) -> None:
        """Correct what was taken on a guess."""
        self._left += taken - used

    def remaining(self) -> int:
        """Return about how much may be used now."""
        in_window: int = self._limiter.get_window_stats(self.limit, self._id).remaining
        return max(0, min(self.limit.amount, in_window + self._left))

    def _draw(self, cost: int) -> None:
        now = time.monotonic()
        amount = self.limit.amount
        needed = min(cost, amount)
        if now >= self._closed_until:
            least = min(needed - self._left, amount)
            # The last bit of a limit may be less than what is drawn at once.
            for wanted in (max(least, amount // DRAWN_SHARE), least):
                if self._limiter.hit(self.limit, self._id, cost=wanted):
                    self._left += wanted
                    break
            else:
                self._close(now, least)
        if self._left < needed:
            raise self._refusal()

    def _close(self, now: float, wanted: int) -> None:
        window = self.limit.get_expiry()
        self._closed_until = now + min(window / PAUSE_SHARE, LONGEST_PAUSE_SECONDS)
        key = self.limit.key_for(self._id)
        storage = cast("SlidingWindowCounterSupport", self._limiter.storage)
        before, before_left, current, current_left = storage.get_sliding_window(key, window)
        self._opens = now + seconds_until_room(
            wanted,
            self.limit.amount,
            window=window,
            before=before,
            current=current,
            # Of a window in which nothing was used the storage does not tell when it ends.
            left=before_left if before else current_left - window,
        )

    def _refusal(self) -> TooManyRequests:
        window = self.limit.get_expiry()
        seconds = max(1, math.ceil(self._opens - time.monotonic()))
        return self._kind.error(
            self._kind.sentence.format(self.limit.amount),
            retry_after=seconds,
            quota=Quota(self._kind.name, self.limit.amount, window),
        )


def seconds_until_room(
    wanted: int, amount: int, *, window: float, before: int, current: int, left: float
) -> float:
    """Return after how many seconds so much may be used if nothing else is until then.

    ``before`` and ``current`` were used in the window before this one, which counts less and less
    until this one's end in ``left`` seconds, and in this one.
    """
    room = amount - wanted - current
    if room >= 0:
        return max(0.0, left - room * window / before) if before else 0.0
    return left + window * (1 - (amount - wanted) / current)
