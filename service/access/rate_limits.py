"""Rate limits of tenants: requests per second and rows per minute."""

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from service.errors import Quota, RequestLimitReached, RowLimitReached, TooManyRequests
from service.storage.tenants import OwnLimits


@dataclass(frozen=True)
class TenantLimits:
    """Limits of a tenant; 0 means unlimited.

    ``jobs`` counts calibrations and evaluations that are queued or running.
    """

    requests_per_second: int = 0
    rows_per_minute: int = 0
    stored_bytes: int = 0
    jobs: int = 0

    def but(self, own: OwnLimits) -> "TenantLimits":
        """Return these limits with a tenant's own limits in their place."""
        return replace(self, **own)


NO_LIMITS = TenantLimits()


@dataclass(frozen=True)
class RateLimitKind:
    """What is limited, in which window, and the error class of a rate limit."""

    name: str
    seconds: int
    window: str
    error: type[TooManyRequests]


class RateLimit:
    """Counts a tenant's use against one limit; call it from one event loop only.

    It uses a sliding window with two counters: the use of the previous window counts in proportion
    to the part of it that lies within the last window length. A cost above the whole limit passes
    when the whole limit is available, and later windows pay for it. Otherwise no window exceeds
    the limit.
    """

    __slots__ = ("_before", "_clock", "_current", "_debt", "_kind", "_window", "amount")

    def __init__(
        self, kind: RateLimitKind, amount: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.amount = amount
        self._kind = kind
        self._clock = clock
        self._window = 0
        self._before = 0
        self._current = 0
        # Use beyond the limit that later windows must pay for.
        self._debt = 0

    def take(self, cost: int = 1) -> int:
        """Take an amount; return the number of the window that counts it.

        Raises
        ------
        TooManyRequests
            If less is left; nothing is used then.
        """
        self._require(cost)
        self._current += cost
        return self._window

    def check_available(self) -> None:
        """Check that something is left, and take nothing.

        Raises
        ------
        TooManyRequests
            If nothing is left.
        """
        self._require(1)

    def adjust(self, *, taken: int, used: int, window: int | None = None) -> None:
        """Replace an estimated amount by the actual one, in the window that counted it."""
        self._elapsed()
        more = used - taken
        if more >= 0 or window == self._window:
            self._current += more
            return
        left = self._debt + more
        self._debt = max(0, left)
        if window == self._window - 1:
            self._before = max(0, self._before + min(0, left))

    def remaining(self) -> int:
        """Return the amount that is left now."""
        return max(0, math.floor(self.amount - self._used(self._elapsed())))

    def _require(self, cost: int) -> None:
        elapsed = self._elapsed()
        needed = min(cost, self.amount)
        if self._used(elapsed) + needed > self.amount:
            seconds = max(1, math.ceil(self._seconds_until_room(needed, elapsed)))
            raise self._kind.error(
                f"Rate limit of {self.amount} {self._kind.name} per {self._kind.window} reached "
                "for this tenant. Retry later or request a higher limit.",
                retry_after=seconds,
                quota=Quota(self._kind.name, self.amount, self._kind.seconds),
            )

    def _used(self, elapsed: float) -> float:
        return self._before * (1 - elapsed / self._kind.seconds) + self._current + self._debt

    def _elapsed(self) -> float:
        """Begin a new window if one is due; return the seconds since the current one began."""
        window, elapsed = divmod(self._clock(), self._kind.seconds)
        n_ended = int(window) - self._window
        if n_ended > 0:
            self._before, self._debt = self._after(n_ended)
            self._current = 0
            self._window = int(window)
        return elapsed

    def _after(self, n_windows: int) -> tuple[int, int]:
        """Return the previous window's use and the debt, ``n_windows`` later."""
        unpaid = max(0, self._current + self._debt - (n_windows - 1) * self.amount)
        return min(unpaid, self.amount), max(0, unpaid - self.amount)

    def _seconds_until_room(self, needed: int, elapsed: float) -> float:
        """Return the seconds until this amount is available if nothing else is taken."""
        before, held = self._before, self._current + self._debt
        n_windows = max(0, -(-(held + needed - self.amount) // self.amount))
        if n_windows:
            before, held = self._after(n_windows)
        share = 1 - (self.amount - needed - held) / before if before else 0.0
        return (n_windows + max(0.0, share)) * self._kind.seconds - elapsed


REQUESTS = RateLimitKind("requests", 1, "second", RequestLimitReached)
ROWS = RateLimitKind("rows", 60, "minute", RowLimitReached)


@dataclass(frozen=True, slots=True, eq=False)
class TenantLimiter:
    """A tenant's limits and their current use; None if there is no limit.

    ``holder`` is the tenant for which a `SharedAmount` counts; None if only the total counts.
    """

    limits: TenantLimits = NO_LIMITS
    requests: RateLimit | None = None
    rows: RateLimit | None = None
    holder: UUID | None = None


UNLIMITED = TenantLimiter()


@dataclass(eq=False)
class TenantLimiters:
    """The limiters of all tenants; a limiter continues while its tenant's limits stay the same.

    Each process counts for itself. A sliding window needs two counters for any limit, and allows
    no double burst at a window boundary.
    """

    defaults: TenantLimits
    _meters: dict[UUID, TenantLimiter] = field(default_factory=dict)

    def of(
        self, tenant_ids: Collection[UUID], own: Mapping[UUID, OwnLimits]
    ) -> Mapping[UUID, TenantLimiter]:
        """Return the limiters of these tenants; ``own`` holds individual limits.

        The limiters of all other tenants are dropped.
        """
        before, self._meters = self._meters, {}
        for tenant_id in tenant_ids:
            limits = self.defaults.but(own.get(tenant_id, {}))
            known = before.get(tenant_id)
            if known is None or known.limits != limits:
                known = TenantLimiter(
                    limits,
                    requests=_allowance(REQUESTS, limits.requests_per_second),
                    rows=_allowance(ROWS, limits.rows_per_minute),
                    holder=tenant_id,
                )
            self._meters[tenant_id] = known
        return self._meters


def _allowance(kind: RateLimitKind, amount: int) -> RateLimit | None:
    return RateLimit(kind, amount) if amount else None
