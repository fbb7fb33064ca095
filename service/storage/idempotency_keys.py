"""Idempotency keys of one tenant: every query of theirs."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from models import IdempotencyKey
from service.errors import InvalidInput

HEADER = "Idempotency-Key"


@dataclass(frozen=True)
class KeyedRequest:
    """A request that its client may repeat: the key it gave, and a digest of all it asks for."""

    key: str
    digest: str


class KeyTaken(Exception):
    """The same key was kept at the same time, for another calibration."""


def made_before(session: Session, tenant_id: UUID, request: KeyedRequest) -> UUID | None:
    """Return the calibration that this request has made, or None if it made none.

    Raises
    ------
    InvalidInput
        If the key came with another request.
    """
    found = session.execute(
        select(IdempotencyKey.digest, IdempotencyKey.calibration_id).where(
            IdempotencyKey.tenant_id == tenant_id, IdempotencyKey.key == request.key
        )
    ).one_or_none()
    if found is None:
        return None
    if found.digest != request.digest:
        raise InvalidInput.at(
            HEADER, "this key came with another request before; send a new key with a new request"
        )
    made: UUID = found.calibration_id
    return made


def is_kept(session: Session, tenant_id: UUID, key: str) -> bool:
    """Tell whether a request of this key has made something, whatever its content was."""
    found = select(IdempotencyKey.key).where(
        IdempotencyKey.tenant_id == tenant_id, IdempotencyKey.key == key
    )
    return session.execute(found).first() is not None


def keep_key(
    session: Session, tenant_id: UUID, request: KeyedRequest | None, calibration_id: UUID
) -> None:
    """Keep the key of the request, if it has one, with the calibration that it makes.

    Whoever keeps the same key at the same time waits here for the first to end; older SQLite knows
    no RETURNING, so a second statement tells who was first.

    Raises
    ------
    KeyTaken
        If another was first; what the transaction did must be undone.
    """
    if request is None:
        return
    on_sqlite = session.get_bind().dialect.name == "sqlite"
    insert = sqlite.insert if on_sqlite else postgresql.insert
    session.execute(
        insert(IdempotencyKey)
        .values(
            tenant_id=tenant_id,
            key=request.key,
            digest=request.digest,
            calibration_id=calibration_id,
        )
        .on_conflict_do_nothing(index_elements=[IdempotencyKey.tenant_id, IdempotencyKey.key])
    )
    kept_for = session.scalars(
        select(IdempotencyKey.calibration_id).where(
            IdempotencyKey.tenant_id == tenant_id, IdempotencyKey.key == request.key
        )
    ).one_or_none()
    if kept_for != calibration_id:
        raise KeyTaken
