"""Tenants, their limits, and whose rows a transaction sees."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Literal, TypeAlias
from uuid import UUID, uuid4

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from models import (
    DEFAULT_TENANT,
    UNFINISHED,
    Artifact,
    BinTable,
    Calibration,
    Evaluation,
    OperatingPoint,
    Tenant,
    TenantLimit,
)
from service.errors import NotFound, shown

# The tenant whose rows a transaction sees, or the mark of a transaction that crosses tenants.
TenantScope: TypeAlias = UUID | Literal["*"]
ALL_TENANTS: Literal["*"] = "*"


def set_tenant(connection: Connection, tenant: TenantScope) -> None:
    """Let the rest of the transaction see and write the rows of one tenant, or of all.

    Until then PostgreSQL's row-level security hides all rows from a role that it applies to.
    SQLite has no such security, so nothing changes there.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT set_config('howsure.tenant', %s, true)", (str(tenant),))


# Limits of one tenant by name: those left out are those of the settings, 0 means unlimited.
OwnLimits: TypeAlias = Mapping[str, int]
LIMITS = ("requests_per_second", "rows_per_minute", "stored_bytes", "jobs")


def default_tenant_id(session: Session) -> UUID:
    """Return the tenant that every database starts with."""
    return session.scalars(select(Tenant.id).where(Tenant.name == DEFAULT_TENANT)).one()


def tenant_named(session: Session, name: str) -> UUID:
    """Return the tenant of this name; create it if it does not exist."""
    of_name = select(Tenant.id).where(Tenant.name == name)
    found = session.scalars(of_name).one_or_none()
    if found is None:
        # Another process may have made it since.
        with suppress(IntegrityError), session.begin_nested():
            session.add(Tenant(id=uuid4(), name=name))
        found = session.scalars(of_name).one()
    return found


def tenants_with_limits(session: Session) -> list[tuple[UUID, str, OwnLimits]]:
    """Return id, name and own limits of every tenant, by their names."""
    columns = (Tenant.id, Tenant.name, TenantLimit)
    rows = session.execute(select(*columns).outerjoin(TenantLimit).order_by(Tenant.name))
    return [(tenant_id, name, _limits(row)) for tenant_id, name, row in rows]


def own_limits(session: Session) -> dict[UUID, OwnLimits]:
    """Return the limits of those tenants that have their own."""
    rows = session.scalars(select(TenantLimit))
    return {row.tenant_id: _limits(row) for row in rows}


def set_limits(session: Session, name: str, changes: Mapping[str, int | None]) -> None:
    """Change some limits of a tenant; the others stay as they are.

    Raises
    ------
    NotFound
        If there is no tenant of this name.
    """
    locked = select(Tenant).where(Tenant.name == name).with_for_update(key_share=True)
    tenant = session.scalars(locked).one_or_none()
    if tenant is None:
        raise NotFound(f"there is no tenant {shown(name)}; see `howsure tenants list`")
    row = session.get(TenantLimit, tenant.id)
    if row is None:
        row = TenantLimit(tenant_id=tenant.id)
        session.add(row)
    for limit, value in changes.items():
        setattr(row, limit, value)


def _limits(row: TenantLimit | None) -> OwnLimits:
    own = {name: getattr(row, name, None) for name in LIMITS}
    return {name: value for name, value in own.items() if value is not None}


def lock_usage(session: Session, tenant_id: UUID) -> None:
    """Lock the tenant: other transactions of the tenant wait here until this one ends.

    Later counts include everything that they have committed. On SQLite one transaction writes at a
    time. Take this lock last, so that a waiting transaction holds nothing that the owner needs.
    Rows that refer to a tenant do not wait.
    """
    session.execute(
        select(Tenant.id).where(Tenant.id == tenant_id).with_for_update(key_share=True)
    ).one()


# A row of a bin with its index, in PostgreSQL.
BIN_BYTES = 128


def stored_bytes(session: Session, tenant_id: UUID) -> int:
    """Return the bytes of a tenant's files, bins and rows; shared files count once."""
    files = select(Artifact.key, Artifact.size).where(Artifact.tenant_id == tenant_id).distinct()
    stored = session.scalar(select(func.sum(files.subquery().c.size))) or 0
    of_tenant = BinTable.tenant_id == tenant_id
    bins = session.scalar(select(func.sum(BinTable.quantile_bins)).where(of_tenant)) or 0
    rows = sum(
        session.scalar(select(func.sum(table.row_bytes)).where(table.tenant_id == tenant_id)) or 0
        for table in (Calibration, Evaluation, OperatingPoint)
    )
    return int(stored) + int(bins) * BIN_BYTES + int(rows)


def unfinished_jobs(session: Session, tenant_id: UUID) -> int:
    """Return how many calibrations and evaluations of a tenant are queued or running."""
    return sum(
        session.scalar(
            select(func.count())
            .select_from(table)
            .where(table.status.in_(UNFINISHED), table.tenant_id == tenant_id)
        )
        or 0
        for table in (Calibration, Evaluation)
    )
