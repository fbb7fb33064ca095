"""Names of calibrations, and which version each has reached."""

from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class CalibrationName(Base):
    """A name under which versions are counted; it outlives them, so that none is ever reused."""

    __tablename__ = "calibration_name"
    __table_args__ = (
        CheckConstraint("last_version >= 1", name="last_version"),
        CheckConstraint("promoted_version BETWEEN 1 AND last_version", name="promoted_version"),
    )

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenant.id"), primary_key=True)
    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    last_version: Mapped[int]
    promoted_version: Mapped[int | None]
