"""Idempotency keys: which calibration a request has made, so that a repeat makes no other."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, database_now


class IdempotencyKey(Base):
    """A key that a client gave to a request, and a digest of that request.

    It lives as long as the calibration that the request made.
    """

    __tablename__ = "idempotency_key"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "calibration_id"],
            ["calibration.tenant_id", "calibration.id"],
            ondelete="CASCADE",
        ),
        Index(None, "tenant_id", "calibration_id"),
        CheckConstraint("length(digest) = 64", name="digest"),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64))
    calibration_id: Mapped[UUID]
    created_at: Mapped[datetime] = mapped_column(default=database_now())
