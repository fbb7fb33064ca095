"""The audit table: who changed what, or was refused to; rows are added and never changed."""

from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, database_now, one_of

AuditVia: TypeAlias = Literal["api", "page", "command"]
AuditResult: TypeAlias = Literal["accepted", "refused"]


class AuditEntry(Base):
    """What somebody asked to be changed, and what came of it.

    ``key_id`` is null where no key was asked for, and of commands; ``subject`` is what was to be
    changed, as far as it is known. The migration adds triggers that refuse every other statement
    than one that inserts: also a program with all rights of the service cannot rewrite what it did.
    """

    __tablename__ = "audit_entry"
    __table_args__ = (
        Index(None, "tenant_id", "created_at", "id"),
        CheckConstraint("(result = 'refused') = (code IS NOT NULL)", name="code"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenant.id"))
    created_at: Mapped[datetime] = mapped_column(default=database_now())
    via: Mapped[AuditVia] = mapped_column(one_of(AuditVia, name="via"))
    key_id: Mapped[str | None] = mapped_column(String(12))
    action: Mapped[str] = mapped_column(String(40))
    subject: Mapped[str | None] = mapped_column(String(300))
    result: Mapped[AuditResult] = mapped_column(one_of(AuditResult, name="result"))
    code: Mapped[str | None] = mapped_column(String(100))
    request_id: Mapped[str | None] = mapped_column(String(200))
