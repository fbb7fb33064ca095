"""Which job comes next: tenants take turns, and within one the oldest job is the first.

The tenant with the fewest running jobs comes first; among equals a tenant that was never served,
then the one served longest ago. Every query uses an index; its cost grows with the number of
waiting tenants, not with their jobs.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, func, select
from sqlalchemy.orm import Session, load_only
from sqlalchemy.sql.expression import CTE

from models import Job, database_now

J = TypeVar("J", bound=Job)

_QUERIES: dict[type[Job], Select[UUID]] = {}


def lock_next_job(session: Session, table: type[J], columns: Sequence[str]) -> J | None:
    """Lock and return the next job with these columns; None if no job can be claimed.

    Jobs that another transaction has locked are skipped.
    """
    only = load_only(*(getattr(table, column) for column in columns), raiseload=True)
    skipped_tenants: list[UUID] = []
    query = _first_tenant(table)
    while (tenant_id := session.scalar(query)) is not None:
        oldest = (
            select(table)
            .options(only)
            .where(table.tenant_id == tenant_id)
            .order_by(table.created_at, table.id)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        # Abandoned jobs were claimed before the queued ones.
        for claimable in (_is_abandoned(table), _is_queued(table)):
            row = session.scalars(oldest.where(claimable)).first()
            if row is not None:
                return row
        skipped_tenants.append(tenant_id)
        query = _next_tenant(table, skipped_tenants)
    return None


def has_claimable_jobs(session: Session, table: type[Job]) -> bool:
    """Tell whether a job can be claimed, unless another transaction has locked it."""
    return session.scalar(_first_tenant(table)) is not None


def _first_tenant(table: type[Job]) -> Select[UUID]:
    # Building this query takes longer than running it.
    if table not in _QUERIES:
        _QUERIES[table] = _next_tenant(table)
    return _QUERIES[table]


def _is_queued(table: type[Job]) -> ColumnElement[bool]:
    return table.status == "queued"


def _is_abandoned(table: type[Job]) -> ColumnElement[bool]:
    """Match running jobs whose lease has expired."""
    return and_(table.status == "running", table.lease_until <= database_now())


def _next_tenant(table: type[Job], skipped: Collection[UUID] = ()) -> Select[UUID]:
    """Return the query of the next tenant that has jobs to claim."""
    queued = _tenants_with_queued_jobs(table)
    waiting = (
        select(queued.c.tenant_id)
        .where(queued.c.tenant_id.is_not(None))
        .union(select(table.tenant_id).where(_is_abandoned(table)))
        .subquery("waiting")
    )
    tenant_id: ColumnElement[UUID] = waiting.c.tenant_id
    running = _running(table, tenant_id).correlate(waiting).scalar_subquery()
    served = _served(table, tenant_id).correlate(waiting).scalar_subquery()
    return (
        select(tenant_id)
        .where(tenant_id.not_in(skipped))
        .order_by(running, served.nulls_first(), tenant_id)
        .limit(1)
    )


def _tenants_with_queued_jobs(table: type[Job]) -> CTE:
    """Return each tenant with queued jobs once, and a null, by skipping through the index.

    For DISTINCT both databases would read the index entries of all jobs.
    """
    smallest = select(table.tenant_id).where(_is_queued(table)).order_by(table.tenant_id).limit(1)
    found = select(smallest.scalar_subquery().label("tenant_id")).cte("queued", recursive=True)
    larger = smallest.where(table.tenant_id > found.c.tenant_id).correlate(found).scalar_subquery()
    return found.union_all(select(larger).where(found.c.tenant_id.is_not(None)))


def _running(table: type[Job], tenant_id: ColumnElement[UUID]) -> Select[int]:
    return (
        select(func.count())
        .select_from(table)
        .where(table.status == "running", table.tenant_id == tenant_id)
        .where(table.lease_until > database_now())
    )


def _served(table: type[Job], tenant_id: ColumnElement[UUID]) -> Select[datetime | None]:
    return (
        select(table.claimed_at)
        .where(table.tenant_id == tenant_id, table.claimed_at.is_not(None))
        .order_by(table.claimed_at.desc())
        .limit(1)
    )
