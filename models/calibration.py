"""Calibrations: the resource, and at once the job that makes it."""

from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    String,
    UniqueConstraint,
    and_,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column, relationship

from models.artifact import Artifact
from models.base import Base
from models.job import Job, job_rules


class Calibration(Job, Base):
    """What one POST /calibrate makes; once finished it never changes.

    ``refit_of`` is the calibration whose records it was fitted to anew. That one may be gone.
    ``digest`` is of everything that its answers depend on, and ``decision_digest`` of its last
    operating point, the one thing that changes.
    """

    __tablename__ = "calibration"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "name"], ["calibration_name.tenant_id", "calibration_name.name"]
        ),
        UniqueConstraint("tenant_id", "id"),
        UniqueConstraint("tenant_id", "name", "version"),
        Index(None, "tenant_id", "created_at", "id"),
        CheckConstraint("version >= 1", name="version"),
        *job_rules(),
    )

    name: Mapped[str] = mapped_column(String(100))
    version: Mapped[int]
    refit_of: Mapped[UUID | None]

    config: Mapped[dict[str, Any]] = mapped_column(JSON)
    onnx_model: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    data: Mapped[dict[str, Any]] = mapped_column(JSON)
    versions: Mapped[dict[str, str]] = mapped_column(JSON)
    accuracy: Mapped[dict[str, float] | None] = mapped_column(JSON(none_as_null=True))
    serve: Mapped[dict[str, str] | None] = mapped_column(JSON(none_as_null=True))
    warnings: Mapped[list[str]] = mapped_column(JSON)
    findings: Mapped[list[dict[str, Any]]] = mapped_column(
        JSON, default=list, server_default=text("'[]'")
    )

    model_scores: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    verdicts: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    baselines: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    oracles: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    mislabelled: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    digest: Mapped[str | None] = mapped_column(String(64))
    decision_digest: Mapped[str | None] = mapped_column(String(64))

    artifacts: Mapped[list[Artifact]] = relationship(
        lazy="raise",
        primaryjoin=lambda: and_(
            Calibration.tenant_id == Artifact.tenant_id,
            Calibration.id == Artifact.calibration_id,
            Artifact.evaluation_id.is_(None),
        ),
        order_by=lambda: [Artifact.role, Artifact.position],
        passive_deletes="all",
    )


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
