"""What a tenant uses of its limits, and holds of what tenants share."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Annotated

from pydantic import Field

from service.access.api_keys import Caller
from service.access.rate_limits import REQUESTS, ROWS, RateLimit, RateLimitKind
from service.shared_amounts import SharedAmount
from service.storage.database import Database
from service.storage.tenants import stored_bytes, unfinished_jobs


@dataclass(frozen=True)
class Used:
    """A limit and its current use."""

    limit: Annotated[int | None, Field(examples=[1000], description="The limit; null: no limit.")]
    used: Annotated[int | None, Field(examples=[3], description="Current use; null: not counted.")]
    seconds: Annotated[
        int | None,
        Field(examples=[1], description="Window in seconds; null for totals."),
    ]


@dataclass(frozen=True)
class Usage:
    """All limits of the API key's tenant, and its shares of what tenants share."""

    requests: Annotated[Used, Field(description="Requests per second, counted by this process.")]
    rows: Annotated[Used, Field(description="Predicted rows per minute, counted by this process.")]
    stored_bytes: Annotated[Used, Field(description="Bytes of models, data, records and exports.")]
    jobs: Annotated[Used, Field(description="Queued or running calibrations and evaluations.")]
    shared: Annotated[
        dict[str, Used],
        Field(
            examples=[{"queued-rows": {"limit": 4096, "used": 12, "seconds": None}}],
            description="What the tenant holds in this process of all that tenants share; `limit` "
            "is that of all together.",
        ),
    ]


def usage_of(database: Database, caller: Caller, amounts: Iterable[SharedAmount]) -> Usage:
    """Return the current use of a caller's limits, and its shares of amounts."""
    tenant_id, meter = caller.tenant_id, caller.meter
    with database.reading(tenant_id) as session:
        n_bytes, n_jobs = stored_bytes(session, tenant_id), unfinished_jobs(session, tenant_id)
    return Usage(
        requests=_in_time(REQUESTS, meter.requests),
        rows=_in_time(ROWS, meter.rows),
        stored_bytes=Used(meter.limits.stored_bytes or None, n_bytes, None),
        jobs=Used(meter.limits.jobs or None, n_jobs, None),
        shared={
            amount.line.title: Used(
                int(amount.total) if isfinite(amount.total) else None,
                amount.held_by(tenant_id),
                None,
            )
            for amount in amounts
        },
    )


def _in_time(kind: RateLimitKind, allowance: RateLimit | None) -> Used:
    if allowance is None:
        return Used(None, None, kind.seconds)
    return Used(allowance.amount, allowance.amount - allowance.remaining(), kind.seconds)
