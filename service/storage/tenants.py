"""Tenants."""

from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from models import DEFAULT_TENANT, Tenant


def default_tenant_id(session: Session) -> UUID:
    """Return the tenant that every database starts with."""
    return session.scalars(select(Tenant.id).where(Tenant.name == DEFAULT_TENANT)).one()
