"""Which job comes next: tenants take turns, and within one the oldest job is the first.

The tenant that has the fewest jobs running comes before the others; of equals the one that was
served longest ago, before all of them one that never was. Each question is answered from an index,
in steps that grow with the tenants who wait and not with their jobs.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, SQLColumnExpression, and_, func, select
from sqlalchemy.orm import Session
from sqlalchemy.sql.expression import CTE

from models import Job, database_now


def lock_next(
    session: Session, table: type[Job], columns: Sequence[SQLColumnExpression[Any]]
) -> Row[Any] | None:
    """Lock the job whose turn it is and return these columns of it; None if none can be claimed.

    Those that others hold locked at this moment are passed over.
    """
    passed: list[UUID] = []
    while (tenant_id := session.scalar(_next_tenant(table, passed))) is not None:
        oldest = (
            select(*columns)
            .where(table.tenant_id == tenant_id)
            .order_by(table.created_at, table.id)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        # What is abandoned was begun before what is queued was reached.
        for claimable in (_is_abandoned(table), _is_queued(table)):
            row = session.execute(oldest.where(claimable)).first()
            if row is not None:
                return row
        passed.append(tenant_id)
    return None


def _is_queued(table: type[Job]) -> ColumnElement[bool]:
    return table.status == "queued"


def _is_abandoned(table: type[Job]) -> ColumnElement[bool]:
    """Tell which jobs have an owner that gave no sign of life in time."""
    return and_(table.status == "running", table.lease_until <= database_now())


def _next_tenant(table: type[Job], passed: Collection[UUID]) -> Select[UUID]:
    """Return the query of the tenant whose turn it is, of those with jobs that can be claimed."""
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
        .where(tenant_id.not_in(passed))
        .order_by(running, served.nulls_first(), tenant_id)
        .limit(1)
    )


def _tenants_with_queued_jobs(table: type[Job]) -> CTE:
    """Return each of them once, and a null, by jumping through the index from one to the next.

    Neither database does so for DISTINCT: both would read the entries of all jobs.
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
