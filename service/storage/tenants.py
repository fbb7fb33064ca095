"""Tenants, and what they may use."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from uuid import UUID, uuid4

from sqlalchemy import select
from sqlalchemy.orm import Session

from models import DEFAULT_TENANT, Tenant, TenantLimit
from service.errors import NotFound, shown


@dataclass(frozen=True)
class OwnLimits:
    """Limits of one tenant alone: None is what the settings say, 0 is none."""

    requests_per_second: int | None = None
    rows_per_minute: int | None = None
    stored_bytes: int | None = None
    jobs: int | None = None


def default_tenant_id(session: Session) -> UUID:
    """Return the tenant that every database starts with."""
    return session.scalars(select(Tenant.id).where(Tenant.name == DEFAULT_TENANT)).one()


def tenant_named(session: Session, name: str) -> UUID:
    """Return the tenant of this name, which is made if there is none yet."""
    found = session.scalars(select(Tenant.id).where(Tenant.name == name)).one_or_none()
    if found is not None:
        return found
    tenant = Tenant(id=uuid4(), name=name)
    session.add(tenant)
    session.flush()
    return tenant.id


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
        raise NotFound(f"there is no tenant {shown(name)}; `howsure tenants list` tells them")
    row = session.get(TenantLimit, tenant.id)
    if row is None:
        row = TenantLimit(tenant_id=tenant.id)
        session.add(row)
    for limit, value in changes.items():
        setattr(row, limit, value)


def _limits(row: TenantLimit | None) -> OwnLimits:
    if row is None:
        return OwnLimits()
    return OwnLimits(**{name: getattr(row, name) for name in asdict(OwnLimits())})
