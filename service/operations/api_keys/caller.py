"""Who asks: a tenant, and what it may do."""

import uuid
from dataclasses import dataclass

from service.operations.tenants import UNMETERED, TenantMeter

# Where an ASGI scope has the one who sends the request.
CALLER = "howsure.caller"

PREDICT = "predict"
READ = "read"
WRITE = "write"
ADMIN = "admin"
SCOPES = {
    PREDICT: "ask for predictions",
    READ: "see calibrations, reports, bins and exports",
    WRITE: "make, change and delete them",
    ADMIN: "see what the service tells of all tenants, metrics and models, and the audit table",
}


@dataclass(slots=True, eq=False)
class Caller:
    """Whoever sends a request; ``key_id`` is None where no key is asked for.

    ``is_used`` is set by each request, and reset by who writes that down. ``meter`` is the
    tenant's, of all keys that it has.
    """

    tenant_id: uuid.UUID
    key_id: str | None
    scopes: frozenset[str]
    is_used: bool = False
    meter: TenantMeter = UNMETERED


def anybody(tenant_id: uuid.UUID) -> Caller:
    """Return the caller of a service that asks for no key."""
    return Caller(tenant_id, None, frozenset(SCOPES))
