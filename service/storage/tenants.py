"""Tenants."""

from uuid import UUID, uuid4

from sqlalchemy import select
from sqlalchemy.orm import Session

from models import DEFAULT_TENANT, Tenant


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
