"""Making, rotating and revoking keys."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy.orm import Session

from models import ApiKey
from service.errors import Conflict, InvalidInput, shown
from service.operations.api_keys.caller import SCOPES
from service.operations.api_keys.key_text import KeyText, new_key_text
from service.operations.api_keys.pepper import Pepper
from service.operations.audit import Act
from service.storage import api_keys as stored
from service.storage.database import Database
from service.storage.tenants import tenant_named

MOST_DAYS = 3650
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class MadeKey:
    """A key as its owner is told it, once."""

    id: str
    text: str = field(repr=False)
    expires_at: datetime


def create_key(
    database: Database,
    pepper: Pepper,
    *,
    name: str,
    tenant: str,
    scopes: Collection[str],
    days: int,
) -> MadeKey:
    """Make a key for a tenant, which is made if there is none of this name.

    Raises
    ------
    InvalidInput
        If a name, a scope or the number of days is none that may be.
    """
    _check(name, tenant, scopes, days)
    drawn = new_key_text()
    with database.session(is_news=False) as session:
        new = stored.NewKey(
            id=drawn.id,
            tenant_id=tenant_named(session, tenant),
            name=name,
            digest=pepper.digest(drawn.secret),
            pepper_id=pepper.id,
            scopes=sorted(set(scopes)),
            lifetime_days=days,
        )
        _act("create-key", new.tenant_id).accepted(session, new.id)
        return _kept(session, new, drawn)


def rotate_key(database: Database, pepper: Pepper, key_id: str, *, overlap: timedelta) -> MadeKey:
    """Make a key that may do what another may, for as long; that one ends after the overlap.

    Raises
    ------
    NotFound, Conflict
        If there is no such key, or it has ended by now.
    """
    drawn = new_key_text()
    with database.session(is_news=False) as session:
        old = stored.find_key(session, key_id)
        if not stored.is_live(session, old):
            raise Conflict(f"the key {key_id} is revoked or expired: create another")
        new = stored.NewKey(
            id=drawn.id,
            tenant_id=old.tenant_id,
            name=old.name,
            digest=pepper.digest(drawn.secret),
            pepper_id=pepper.id,
            scopes=old.scopes,
            lifetime_days=old.lifetime_days,
        )
        stored.let_expire(session, old, overlap)
        _act("rotate-key", old.tenant_id).accepted(session, old.id)
        _act("create-key", old.tenant_id).accepted(session, new.id)
        return _kept(session, new, drawn)


def revoke_key(database: Database, key_id: str) -> None:
    """End a key for good.

    Raises
    ------
    NotFound
        If there is no such key.
    """
    with database.session(is_news=False) as session:
        row = stored.find_key(session, key_id)
        stored.revoke_key(session, row)
        _act("revoke-key", row.tenant_id).accepted(session, key_id)


def list_keys(database: Database, tenant: str | None) -> list[stored.ListedKey]:
    """Return the keys of a tenant, or of all."""
    with database.reading() as session:
        return stored.listed_keys(session, tenant)


def _act(action: str, tenant_id: UUID) -> Act:
    """Return what whoever runs the command does: it asks for no key, it has the database."""
    return Act(tenant_id, action, via="command")


def _kept(session: Session, new: stored.NewKey, drawn: KeyText) -> MadeKey:
    row: ApiKey = stored.add_key(session, new)
    return MadeKey(row.id, drawn.written(), row.expires_at)


def _check(name: str, tenant: str, scopes: Collection[str], days: int) -> None:
    for what, found in (("NAME", name), ("--tenant", tenant)):
        if not _NAME.fullmatch(found):
            raise InvalidInput(
                f"{what}: expected up to 100 letters, digits, '.', '_' and '-', got {shown(found)}"
            )
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        got = shown(unknown[0]) if unknown else "none"
        raise InvalidInput(f"--scope: expected {', '.join(SCOPES)}, got {got}")
    if not 1 <= days <= MOST_DAYS:
        raise InvalidInput(f"--days: expected 1 to {MOST_DAYS}, got {days}")
