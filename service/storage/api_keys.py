"""Queries of API keys, which the operator manages for all tenants."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from models import ApiKey, Tenant, database_now
from service.errors import NotFound, shown


@dataclass(frozen=True)
class ActiveKey:
    """The values that identify a key that is neither revoked nor expired."""

    id: str
    tenant_id: UUID
    digest: str
    pepper_id: str
    scopes: frozenset[str]


@dataclass(frozen=True)
class ListedKey:
    """A key as it is shown, with the name of its tenant."""

    row: ApiKey
    tenant: str
    is_expired: bool


class KeyCounts(NamedTuple):
    """Numbers of all keys, which are never deleted, of revoked and of expired ones.

    A key that is made, rotated, revoked or expires changes one of them.
    """

    made: int
    revoked: int
    expired: int


def key_counts(session: Session) -> KeyCounts:
    """Return the numbers of keys."""
    keys = select(func.count()).select_from(ApiKey)
    kinds = (ApiKey.revoked_at.is_not(None), ApiKey.expires_at <= database_now())
    # Each is counted in an index of its own: all rows are read ten times as long.
    counts = (keys, *(keys.where(kind) for kind in kinds))
    return KeyCounts(*session.execute(select(*(one.scalar_subquery() for one in counts))).one())


def active_keys(session: Session) -> list[ActiveKey]:
    """Return all keys that are neither revoked nor expired, in the order of their ids."""
    columns = (ApiKey.id, ApiKey.tenant_id, ApiKey.digest, ApiKey.pepper_id, ApiKey.scopes)
    rows = session.execute(
        select(*columns)
        .where(ApiKey.revoked_at.is_(None), ApiKey.expires_at > database_now())
        .order_by(ApiKey.id)
    )
    return [
        ActiveKey(row.id, row.tenant_id, row.digest, row.pepper_id, frozenset(row.scopes))
        for row in rows
    ]


def add_key(session: Session, row: ApiKey) -> ApiKey:
    """Store a key; its lifetime starts now, by the database's clock."""
    row.created_at = _now(session)
    row.expires_at = row.created_at + timedelta(days=row.lifetime_days)
    session.add(row)
    session.flush()
    return row


def listed_keys(session: Session, tenant: str | None) -> list[ListedKey]:
    """Return the keys of a tenant, or of all, the oldest first."""
    query = (
        select(ApiKey, Tenant.name, ApiKey.expires_at <= database_now())
        .join(Tenant, Tenant.id == ApiKey.tenant_id)
        .order_by(Tenant.name, ApiKey.created_at, ApiKey.id)
    )
    if tenant is not None:
        query = query.where(Tenant.name == tenant)
    return [ListedKey(row, name, bool(expired)) for row, name, expired in session.execute(query)]


def find_key(session: Session, key_id: str) -> ApiKey:
    """Return a key.

    Raises
    ------
    NotFound
        If there is none of this id.
    """
    row = session.get(ApiKey, key_id, with_for_update=True)
    if row is None:
        raise NotFound(f"there is no key {shown(key_id)}; see `howsure keys list`")
    return row


def is_live(session: Session, row: ApiKey) -> bool:
    """Tell whether a key is neither revoked nor expired."""
    return row.revoked_at is None and row.expires_at > _now(session)


def revoke_key(session: Session, row: ApiKey) -> None:
    """Revoke a key; a key that was revoked before keeps its time."""
    if row.revoked_at is None:
        row.revoked_at = _now(session)


def expire_after(session: Session, row: ApiKey, after: timedelta) -> None:
    """Let a key expire after this time, unless it expires earlier."""
    row.expires_at = min(row.expires_at, _now(session) + after)


def note_use(session: Session, key_ids: Iterable[str]) -> None:
    """Record that these keys were just used."""
    session.execute(
        update(ApiKey).where(ApiKey.id.in_(list(key_ids))).values(last_used_at=database_now())
    )


def _now(session: Session) -> datetime:
    return session.scalars(select(database_now())).one()
