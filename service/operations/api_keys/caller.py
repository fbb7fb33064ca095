"""Who asks: a tenant, and what it may do."""

import uuid
from dataclasses import dataclass

PREDICT = "predict"
READ = "read"
WRITE = "write"
ADMIN = "admin"
SCOPES = {
    PREDICT: "ask for predictions",
    READ: "see calibrations, reports, bins and exports",
    WRITE: "make, change and delete them",
    ADMIN: "see what the service tells of all tenants: metrics, models in memory",
}


@dataclass(slots=True, eq=False)
class Caller:
    """Whoever sends a request; ``key_id`` is None where no key is asked for.

    ``is_used`` is set by each request, and reset by who writes that down.
    """

    tenant_id: uuid.UUID
    key_id: str | None
    scopes: frozenset[str]
    is_used: bool = False


def anybody(tenant_id: uuid.UUID) -> Caller:
    """Return the caller of a service that asks for no key."""
    return Caller(tenant_id, None, frozenset(SCOPES))
