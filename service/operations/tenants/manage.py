"""Tenants, and what each may use, as their operator sees them."""

from collections.abc import Mapping

from service.errors import InvalidInput
from service.operations.tenants.limits import TenantLimits
from service.storage import tenants as stored
from service.storage.database import Database

# As much as all databases hold in such a column.
MOST = 2**63 - 1


def list_tenants(database: Database, defaults: TenantLimits) -> list[tuple[str, TenantLimits]]:
    """Return the name of every tenant, and what it may use."""
    with database.reading() as session:
        found = stored.tenants_with_limits(session)
    return [(name, defaults.but(own)) for _, name, own in found]


def limit_tenant(database: Database, name: str, changes: Mapping[str, int | None]) -> None:
    """Change limits of a tenant: None is from now on what the settings say, 0 is none.

    Raises
    ------
    InvalidInput
        If nothing changes, or a number is none that may be.
    NotFound
        If there is no such tenant.
    """
    if not changes:
        raise InvalidInput("expected at least one limit to change; see --help")
    for value in changes.values():
        if value is not None and not 0 <= value <= MOST:
            raise InvalidInput(f"expected a whole number from 0 to {MOST}, got {value}")
    with database.session(is_news=False) as session:
        stored.set_limits(session, name, changes)
