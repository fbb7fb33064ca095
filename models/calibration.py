"""Calibrations: the resource, and at once the job that makes it."""

from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from sqlalchemy import (
    JSON,
    CheckConstraint,
    ForeignKeyConstraint,
    Index,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column, relationship

from models.artifact import Artifact
from models.base import Base
from models.clock import database_now
from models.one_of import one_of

CalibrationStatus: TypeAlias = Literal["queued", "running", "succeeded", "failed", "cancelled"]
UNFINISHED: tuple[CalibrationStatus, ...] = ("queued", "running")


class Calibration(Base):
    """What one POST /calibrate makes; once finished it never changes."""

    __tablename__ = "calibration"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "name"], ["calibration_name.tenant_id", "calibration_name.name"]
        ),
        UniqueConstraint("tenant_id", "id"),
        UniqueConstraint("tenant_id", "name", "version"),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "status", "created_at"),
        CheckConstraint("version >= 1", name="version"),
        CheckConstraint("attempt >= 0", name="attempt"),
        CheckConstraint("progress_done BETWEEN 0 AND progress_total", name="progress"),
        CheckConstraint(
            "(status = 'running') = (lease_owner IS NOT NULL)"
            " AND (status = 'running') = (lease_until IS NOT NULL)",
            name="lease",
        ),
        CheckConstraint(
            "(status IN ('queued', 'running')) = (finished_at IS NULL)",
            name="finished_at",
        ),
        CheckConstraint("(status = 'failed') = (error IS NOT NULL)", name="error"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    tenant_id: Mapped[UUID]
    name: Mapped[str] = mapped_column(String(100))
    version: Mapped[int]

    status: Mapped[CalibrationStatus] = mapped_column(
        one_of(CalibrationStatus, name="status"),
        default="queued",
    )
    attempt: Mapped[int] = mapped_column(default=0)
    lease_owner: Mapped[str | None] = mapped_column(String(200))
    lease_until: Mapped[datetime | None]
    cancel_requested: Mapped[bool] = mapped_column(default=False)
    progress_stage: Mapped[str | None] = mapped_column(Text)
    progress_done: Mapped[int] = mapped_column(default=0)
    progress_total: Mapped[int] = mapped_column(default=0)

    created_at: Mapped[datetime] = mapped_column(default=database_now())
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]

    config: Mapped[dict[str, object]] = mapped_column(JSON)
    onnx_model: Mapped[dict[str, object] | None] = mapped_column(JSON(none_as_null=True))
    data: Mapped[dict[str, object]] = mapped_column(JSON)
    versions: Mapped[dict[str, str]] = mapped_column(JSON)
    accuracy: Mapped[dict[str, float] | None] = mapped_column(JSON(none_as_null=True))
    serve: Mapped[dict[str, str] | None] = mapped_column(JSON(none_as_null=True))
    warnings: Mapped[list[str]] = mapped_column(JSON)
    error: Mapped[dict[str, object] | None] = mapped_column(JSON(none_as_null=True))

    artifacts: Mapped[list[Artifact]] = relationship(
        lazy="raise",
        order_by=lambda: [Artifact.role, Artifact.position],
        passive_deletes="all",
    )
