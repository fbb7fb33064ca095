"""Artifacts: which stored files belong to a calibration, or to a further set of it."""

from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKeyConstraint, Index, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, database_now, one_of

ArtifactRole: TypeAlias = Literal[
    "model",
    "model_data",
    "calibration",
    "evaluation",
    "records",
    "evaluation_records",
    "export",
    "samples",
    "learned",
]


class Artifact(Base):
    """One stored file: the key is the server's, the label is what the client called it.

    It is a file of the calibration itself, or of the evaluation of it that is named. Several
    calibrations may share a key; the file goes some time after the last row that names it.
    """

    __tablename__ = "artifact"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "calibration_id"],
            ["calibration.tenant_id", "calibration.id"],
            ondelete="CASCADE",
        ),
        ForeignKeyConstraint(
            ["tenant_id", "calibration_id", "evaluation_id"],
            ["evaluation.tenant_id", "evaluation.calibration_id", "evaluation.id"],
            ondelete="CASCADE",
        ),
        Index(None, "tenant_id", "key"),
        Index(
            "uq_artifact_of_calibration",
            "tenant_id",
            "calibration_id",
            "role",
            "position",
            unique=True,
            sqlite_where=text("evaluation_id IS NULL"),
            postgresql_where=text("evaluation_id IS NULL"),
        ),
        Index(
            "uq_artifact_of_evaluation",
            "tenant_id",
            "calibration_id",
            "evaluation_id",
            "role",
            "position",
            unique=True,
        ),
        CheckConstraint("position >= 0", name="position"),
        CheckConstraint("size >= 0", name="size"),
        CheckConstraint("length(sha256) = 64", name="sha256"),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    calibration_id: Mapped[UUID] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(500), primary_key=True)
    evaluation_id: Mapped[UUID | None]
    role: Mapped[ArtifactRole] = mapped_column(one_of(ArtifactRole, name="role"))
    position: Mapped[int]
    label: Mapped[str] = mapped_column(Text)
    sha256: Mapped[str] = mapped_column(String(64))
    size: Mapped[int] = mapped_column(BigInteger)


class ReleasedFile(Base):
    """A file that lost a row which named it, and when; the migration adds the trigger."""

    __tablename__ = "released_file"

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(500), primary_key=True)
    released_at: Mapped[datetime] = mapped_column(primary_key=True, default=database_now())
