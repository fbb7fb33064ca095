"""Artifacts: which stored files belong to a calibration."""

from typing import Literal, TypeAlias
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKeyConstraint, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base
from models.one_of import one_of

ArtifactRole: TypeAlias = Literal[
    "model", "model_data", "calibration", "evaluation", "records", "evaluation_records"
]


class Artifact(Base):
    """One stored file: the key is the server's, the label is what the client called it.

    Several rows may share a key; the file goes when the last of them does.
    """

    __tablename__ = "artifact"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "calibration_id"],
            ["calibration.tenant_id", "calibration.id"],
            ondelete="CASCADE",
        ),
        Index(None, "tenant_id", "key"),
        CheckConstraint("position >= 0", name="position"),
        CheckConstraint("size >= 0", name="size"),
        CheckConstraint("length(sha256) = 64", name="sha256"),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    calibration_id: Mapped[UUID] = mapped_column(primary_key=True)
    role: Mapped[ArtifactRole] = mapped_column(
        one_of(ArtifactRole, name="role"),
        primary_key=True,
    )
    position: Mapped[int] = mapped_column(primary_key=True)
    label: Mapped[str] = mapped_column(Text)
    key: Mapped[str] = mapped_column(String(500))
    sha256: Mapped[str] = mapped_column(String(64))
    size: Mapped[int] = mapped_column(BigInteger)
