"""Queries of one tenant's idempotency keys."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from models import IdempotencyKey
from service.errors import InvalidInput

HEADER = "Idempotency-Key"


@dataclass(frozen=True)
class KeyedRequest:
    """A request that its client may repeat: its key and a digest of its content."""

    key: str
    digest: str


class KeyTaken(Exception):
    """Another request stored the same key at the same time."""


def made_before(session: Session, tenant_id: UUID, request: KeyedRequest) -> UUID | None:
    """Return the calibration that this request created, or None.

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


def is_committed(session: Session, tenant_id: UUID, key: str) -> bool:
    """Tell whether a request with this key, of any content, has created something."""
    found = select(IdempotencyKey.key).where(
        IdempotencyKey.tenant_id == tenant_id, IdempotencyKey.key == key
    )
    return session.execute(found).first() is not None


def keep_key(
    session: Session, tenant_id: UUID, request: KeyedRequest | None, calibration_id: UUID
) -> None:
    """Store the key of the request, if it has one, with the calibration that it creates.

    A simultaneous transaction with the same key waits here for the first to end.

    Raises
    ------
    KeyTaken
        If another request was first; the caller must roll back.
    """
    if request is None:
        return
    session.flush()  # so that only the key can fail next
    session.add(
        IdempotencyKey(
            tenant_id=tenant_id,
            key=request.key,
            digest=request.digest,
            calibration_id=calibration_id,
        )
    )
    try:
        session.flush()
    except IntegrityError as error:
        raise KeyTaken from error
