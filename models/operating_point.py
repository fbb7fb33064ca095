"""Operating points: which threshold somebody chose for a calibration, and why."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, CheckConstraint, ForeignKeyConstraint, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, database_now
from models.row_bytes import Weighed


class OperatingPoint(Weighed, Base):
    """One decision of a calibration's history; the last one is in force.

    ``number`` counts a calibration's decisions from 1. Without a threshold it says that none is in
    force any more. ``chosen_by`` is what was asked for, ``consequences`` what the threshold does to
    the calibration set. Rows are added and never changed.
    """

    __tablename__ = "operating_point"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "calibration_id"],
            ["calibration.tenant_id", "calibration.id"],
            ondelete="CASCADE",
        ),
        CheckConstraint("number >= 1", name="number"),
        Index(None, "tenant_id", "row_bytes"),
        CheckConstraint("(threshold IS NULL) = (name IS NULL)", name="name"),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    calibration_id: Mapped[UUID] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str | None] = mapped_column(String(64))
    threshold: Mapped[float | None]
    chosen_by: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    consequences: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    author: Mapped[str] = mapped_column(String(100))
    reason: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(default=database_now())
