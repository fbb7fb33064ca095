"""Evaluations: further sets on which a finished calibration is judged, each a job of its own."""

from typing import Any, Literal, TypeAlias
from uuid import UUID

from sqlalchemy import JSON, ForeignKeyConstraint, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from models.artifact import Artifact
from models.base import Base
from models.job import Job, job_rules

SetRole: TypeAlias = Literal["traffic", "stress"]


class Evaluation(Job, Base):
    """A named further set, labelled or not, and what it says about the calibration.

    ``data`` also has its role, `traffic` unless it says `stress`, and what was changed in it.
    """

    __tablename__ = "evaluation"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "calibration_id"],
            ["calibration.tenant_id", "calibration.id"],
            ondelete="CASCADE",
        ),
        UniqueConstraint("tenant_id", "calibration_id", "id"),
        UniqueConstraint("tenant_id", "calibration_id", "name"),
        *job_rules(),
    )

    calibration_id: Mapped[UUID]
    name: Mapped[str] = mapped_column(String(100))
    labelled: Mapped[bool]

    data: Mapped[dict[str, Any]] = mapped_column(JSON)
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))

    artifacts: Mapped[list[Artifact]] = relationship(
        lazy="raise",
        order_by=lambda: [Artifact.role, Artifact.position],
        passive_deletes="all",
        overlaps="artifacts",
    )

    @property
    def role(self) -> SetRole:
        """Whether it is like the traffic to come, or only says how far data may drift."""
        role: SetRole = self.data.get("role", "traffic")
        return role

    @property
    def type(self) -> str | None:
        """How the samples were changed, such as rotation."""
        kind: str | None = self.data.get("type")
        return kind

    @property
    def intensity(self) -> float | None:
        """How much they were changed."""
        amount: float | None = self.data.get("intensity")
        return amount
