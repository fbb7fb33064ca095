"""The audit log; pages of a list, by time, and their opaque cursors."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import TypeVar
from uuid import UUID, uuid4

from sqlalchemy import Select, select, tuple_
from sqlalchemy.orm import Session

from models import AuditEntry, Calibration, Evaluation, Tenant, Weighed
from service.errors import InvalidInput

T = TypeVar("T", AuditEntry, Calibration, Evaluation)


@dataclass(frozen=True)
class Cursor:
    """The last row of a page; the next page begins behind it."""

    created_at: datetime
    id: UUID

    def encode(self) -> str:
        """Return the cursor as text that needs no escaping in a URL."""
        text = f"{self.created_at.astimezone(UTC).isoformat()} {self.id}"
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(text: str) -> Cursor:
    """Return the cursor that the text stands for.

    Raises
    ------
    InvalidInput
        If the text is not a cursor.
    """
    try:
        padded = text + "=" * (-len(text) % 4)
        decoded = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
        created_at, calibration_id = decoded.split(" ")
        cursor = Cursor(datetime.fromisoformat(created_at), UUID(calibration_id))
    except ValueError as error:
        raise InvalidInput.at("cursor", "expected the next_cursor of a page") from error
    if cursor.created_at.utcoffset() != timedelta(0):
        raise InvalidInput.at("cursor", "expected the next_cursor of a page")
    return cursor


# Of the documents in the rows of a page. In memory they take several times as much.
MOST_PAGE_BYTES = 2 * 1024**2


def rows_of_page(
    session: Session,
    query: Select[T],
    table: type[T],
    *,
    cursor: str | None,
    limit: int,
    oldest_first: bool = False,
) -> tuple[Sequence[T], str | None]:
    """Return up to ``limit`` rows of a query, newest first, and the cursor of the next page.

    A page of large rows ends sooner.

    Raises
    ------
    InvalidInput
        If the cursor is invalid.
    """
    keys = (table.created_at, table.id)
    order = keys if oldest_first else [key.desc() for key in keys]
    query = query.order_by(*order)
    if cursor is not None:
        start = decode_cursor(cursor)
        reached = tuple_(start.created_at, start.id, types=[key.type for key in keys])
        query = query.where(tuple_(*keys) > reached if oldest_first else tuple_(*keys) < reached)
    if issubclass(table, Weighed):
        sizes = session.scalars(query.with_only_columns(table.row_bytes).limit(limit))
        n_fitting = sum(total <= MOST_PAGE_BYTES for total in accumulate(sizes))
        limit = min(limit, max(n_fitting, 1))
    rows = session.scalars(query.limit(limit + 1)).all()
    if len(rows) <= limit:
        return rows, None
    last = rows[limit - 1]
    return rows[:limit], Cursor(last.created_at, last.id).encode()


MOST_SUBJECT_CHARACTERS = 300
FILTERS = ("action", "key_id", "result", "subject")


def add_entry(session: Session, entry: AuditEntry) -> None:
    """Add a row; characters of its subject that cannot be shown are replaced."""
    entry.id = uuid4()
    if entry.subject is not None:
        entry.subject = _shown(entry.subject)
    session.add(entry)


def audit_page(
    session: Session,
    tenant_id: UUID,
    *,
    cursor: str | None = None,
    limit: int,
    since: datetime | None = None,
    only: Mapping[str, str],
) -> tuple[Sequence[AuditEntry], str | None]:
    """Return up to ``limit`` rows of a tenant, newest first, and the cursor of the next page.

    ``only`` holds values of `FILTERS`, by column.

    Raises
    ------
    InvalidInput
        If the cursor is invalid.
    """
    query = _narrowed(since, only).where(AuditEntry.tenant_id == tenant_id)
    return rows_of_page(session, query, AuditEntry, cursor=cursor, limit=limit)


def audit_of_all(
    session: Session,
    *,
    tenant: str | None,
    limit: int,
    since: datetime | None = None,
    only: Mapping[str, str],
) -> list[tuple[str, AuditEntry]]:
    """Return rows of all tenants or of one, newest first, with the names of the tenants."""
    names = {row.id: row.name for row in session.scalars(select(Tenant))}
    query = _narrowed(since, only)
    if tenant is not None:
        query = query.where(AuditEntry.tenant_id.in_([i for i in names if names[i] == tenant]))
    rows, _ = rows_of_page(session, query, AuditEntry, cursor=None, limit=limit)
    return [(names[row.tenant_id], row) for row in rows]


def _narrowed(since: datetime | None, only: Mapping[str, str]) -> Select[AuditEntry]:
    query = select(AuditEntry)
    for column in FILTERS:
        if column in only:
            # A database refuses some texts, which no row holds.
            query = query.where(getattr(AuditEntry, column) == _shown(only[column]))
    return query if since is None else query.where(AuditEntry.created_at >= since)


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text[:MOST_SUBJECT_CHARACTERS])
