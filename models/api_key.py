"""API keys: who may ask, for which tenant and for what."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, database_now


class ApiKey(Base):
    """A key that a client sends; of its secret there is only a digest.

    ``pepper_id`` tells by which pepper the digest was made, ``lifetime_days`` how long it was meant
    to live, which one that takes its place lives as well. A key that is revoked or expired stays,
    so that its id is told apart from one that never was, and ``last_used_at`` may be late.
    """

    __tablename__ = "api_key"
    __table_args__ = (
        Index(None, "tenant_id", "created_at"),
        Index(None, "expires_at"),
        Index(None, "revoked_at"),
        CheckConstraint("length(id) = 12", name="id"),
        CheckConstraint("length(digest) = 64", name="digest"),
        CheckConstraint("lifetime_days >= 1", name="lifetime_days"),
    )

    id: Mapped[str] = mapped_column(String(12), primary_key=True)
    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenant.id"))
    name: Mapped[str] = mapped_column(String(100))
    digest: Mapped[str] = mapped_column(String(64))
    pepper_id: Mapped[str] = mapped_column(String(16))
    scopes: Mapped[list[str]] = mapped_column(JSON)
    lifetime_days: Mapped[int]
    created_at: Mapped[datetime] = mapped_column(default=database_now())
    expires_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
