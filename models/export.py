"""Exports: a finished calibration as one ONNX file, and how that file was compared."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKeyConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, database_now


class Export(Base):
    """How the file, an artifact of the calibration, answered beside the service.

    Of ``samples`` rows, ``classes`` and ``bins`` tell how many differ, and ``probability`` by how
    much a probability or an end of its interval does at most.
    """

    __tablename__ = "export"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "calibration_id"],
            ["calibration.tenant_id", "calibration.id"],
            ondelete="CASCADE",
        ),
        CheckConstraint("samples >= 1", name="samples"),
        CheckConstraint("classes BETWEEN 0 AND samples", name="classes"),
        CheckConstraint("bins BETWEEN 0 AND samples", name="bins"),
        CheckConstraint("probability BETWEEN 0 AND 1", name="probability"),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    calibration_id: Mapped[UUID] = mapped_column(primary_key=True)
    samples: Mapped[int]
    classes: Mapped[int]
    bins: Mapped[int]
    probability: Mapped[float]
    created_at: Mapped[datetime] = mapped_column(default=database_now())
