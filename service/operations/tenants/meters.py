"""What each tenant uses of its limits, for as long as it has keys."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from limits import RateLimitItem, RateLimitItemPerMinute, RateLimitItemPerSecond
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from service.errors import RequestLimitReached, RowLimitReached
from service.operations.tenants.allowance import Allowance, AllowanceKind
from service.operations.tenants.limits import NO_LIMITS, TenantLimits
from service.runner import QueueShare
from service.storage.tenants import OwnLimits

REQUESTS = AllowanceKind(
    "requests",
    "This tenant may send {} requests a second, and has; send fewer, or ask for a higher limit.",
    RequestLimitReached,
)
ROWS = AllowanceKind(
    "rows",
    "This tenant may ask for {} rows a minute, and has; send fewer, or ask for a higher limit.",
    RowLimitReached,
)


@dataclass(frozen=True, slots=True, eq=False)
class TenantMeter:
    """A tenant's limits and what it uses of them; None where there is no limit.

    ``share`` is what it holds of room that all tenants share: None where there are no others.
    """

    limits: TenantLimits = NO_LIMITS
    requests: Allowance | None = None
    rows: Allowance | None = None
    share: QueueShare | None = None


UNMETERED = TenantMeter()


@dataclass(eq=False)
class TenantMeters:
    """The meters of all tenants; those of a tenant whose limits stay the same go on.

    Each process counts for itself. To count by a window that slides, as two counters do it, takes
    the same room for any limit, and lets no tenant have twice its limit where two windows meet.
    """

    defaults: TenantLimits
    _meters: dict[UUID, TenantMeter] = field(default_factory=dict)
    _limiter: SlidingWindowCounterRateLimiter = field(
        default_factory=lambda: SlidingWindowCounterRateLimiter(MemoryStorage())
    )

    def of(
        self, tenant_ids: Collection[UUID], own: Mapping[UUID, OwnLimits]
    ) -> Mapping[UUID, TenantMeter]:
        """Return the meters of these tenants, of which some have limits of their own.

        All others are forgotten.
        """
        before, self._meters = self._meters, {}
        for tenant_id in tenant_ids:
            limits = self.defaults.but(own.get(tenant_id, OwnLimits()))
            known = before.get(tenant_id)
            if known is None or known.limits != limits:
                share = QueueShare() if known is None else known.share
                known = self._made(tenant_id, limits, share)
            self._meters[tenant_id] = known
        return self._meters

    def _made(self, tenant_id: UUID, limits: TenantLimits, share: QueueShare | None) -> TenantMeter:
        a_second, a_minute = limits.requests_per_second, limits.rows_per_minute
        return TenantMeter(
            limits,
            requests=self._allowance(REQUESTS, RateLimitItemPerSecond(a_second), tenant_id),
            rows=self._allowance(ROWS, RateLimitItemPerMinute(a_minute), tenant_id),
            share=share,
        )

    def _allowance(
        self, kind: AllowanceKind, limit: RateLimitItem, tenant_id: UUID
    ) -> Allowance | None:
        return Allowance(kind, limit, tenant_id, self._limiter) if limit.amount else None
