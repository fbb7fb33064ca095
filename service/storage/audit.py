"""The audit table: the statement that adds to it, and those that read it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import Select, and_, or_, select
from sqlalchemy.orm import Session

from models import AuditEntry, AuditResult, AuditVia, Tenant
from service.storage.cursors import Cursor, decode_cursor

MOST_SUBJECT_CHARACTERS = 300
FILTERS = ("action", "key_id", "result", "subject")


def add_entry(  # noqa: PLR0913 - the row has that many columns
    session: Session,
    tenant_id: UUID,
    *,
    via: AuditVia,
    key_id: str | None,
    action: str,
    subject: str | None,
    result: AuditResult,
    code: str | None,
    request_id: str | None,
) -> None:
    """Add a row; characters of a subject that cannot be shown are replaced."""
    row = AuditEntry(
        id=uuid4(),
        tenant_id=tenant_id,
        via=via,
        key_id=key_id,
        action=action,
        subject=None if subject is None else _shown(subject),
        result=result,
        code=code,
        request_id=request_id,
    )
    session.add(row)


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
        If the cursor is none of ours.
    """
    query = select(AuditEntry).where(AuditEntry.tenant_id == tenant_id)
    if cursor is not None:
        start = decode_cursor(cursor)
        query = query.where(
            or_(
                AuditEntry.created_at < start.created_at,
                and_(AuditEntry.created_at == start.created_at, AuditEntry.id < start.id),
            )
        )
    rows = session.scalars(_narrowed(query, since, only).limit(limit + 1)).all()
    if len(rows) <= limit:
        return rows, None
    last = rows[limit - 1]
    return rows[:limit], Cursor(last.created_at, last.id).encode()


def audit_of_all(
    session: Session,
    *,
    tenant: str | None,
    limit: int,
    since: datetime | None = None,
    only: Mapping[str, str],
) -> list[tuple[str, AuditEntry]]:
    """Return rows with the names of their tenants, newest first: those of all, or of one."""
    query = _narrowed(select(AuditEntry), since, only).join(
        Tenant, Tenant.id == AuditEntry.tenant_id
    )
    if tenant is not None:
        query = query.where(Tenant.name == tenant)
    found = session.execute(query.add_columns(Tenant.name).limit(limit))
    return [(name, row) for row, name in found]


def _narrowed(
    query: Select[AuditEntry], since: datetime | None, only: Mapping[str, str]
) -> Select[AuditEntry]:
    for column in FILTERS:
        if column in only:
            # A database refuses some texts, which no row holds.
            query = query.where(getattr(AuditEntry, column) == _shown(only[column]))
    if since is not None:
        query = query.where(AuditEntry.created_at >= since)
    return query.order_by(AuditEntry.created_at.desc(), AuditEntry.id.desc())


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text[:MOST_SUBJECT_CHARACTERS])
