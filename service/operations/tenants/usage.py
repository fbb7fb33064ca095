"""What a tenant may use, and what is left of that."""

from dataclasses import dataclass
from uuid import UUID

from service.operations.tenants.allowance import Allowance
from service.operations.tenants.meters import TenantMeter
from service.storage.database import Database
from service.storage.tenant_usage import stored_bytes, unfinished_jobs


@dataclass(frozen=True)
class Used:
    """A limit, None where there is none, and what is used of it.

    ``seconds`` is the time that it is for, None for what is counted at a time; ``used`` None where
    nothing counts it, for want of a limit.
    """

    limit: int | None
    used: int | None
    seconds: int | None = None


@dataclass(frozen=True)
class Usage:
    """Of all limits of a tenant; requests and rows are those that this process has seen."""

    requests: Used
    rows: Used
    stored_bytes: Used
    jobs: Used


def usage_of(database: Database, tenant_id: UUID, meter: TenantMeter) -> Usage:
    """Return what a tenant uses now."""
    with database.reading() as session:
        n_bytes, n_jobs = stored_bytes(session, tenant_id), unfinished_jobs(session, tenant_id)
    return Usage(
        requests=_in_time(meter.requests, 1),
        rows=_in_time(meter.rows, 60),
        stored_bytes=Used(meter.limits.stored_bytes or None, n_bytes),
        jobs=Used(meter.limits.jobs or None, n_jobs),
    )


def _in_time(allowance: Allowance | None, seconds: int) -> Used:
    if allowance is None:
        return Used(None, None, seconds)
    amount = allowance.limit.amount
    return Used(amount, amount - allowance.remaining(), seconds)
