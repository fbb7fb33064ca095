"""Jobs: work that one owner at a time does under a lease; the row of the work is its own job."""

from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

from sqlalchemy import JSON, CheckConstraint, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.schema import SchemaItem

from models.base import database_now, one_of
from models.row_bytes import Weighed

JobStatus: TypeAlias = Literal["queued", "running", "succeeded", "failed", "cancelled"]
UNFINISHED: tuple[JobStatus, ...] = ("queued", "running")


class Job(Weighed):
    """The columns of a table whose rows are jobs; once finished such a row never changes.

    ``started_at`` is of the first attempt, ``claimed_at`` of the last.
    """

    id: Mapped[UUID] = mapped_column(primary_key=True)
    tenant_id: Mapped[UUID]

    status: Mapped[JobStatus] = mapped_column(one_of(JobStatus, name="status"), default="queued")
    attempt: Mapped[int] = mapped_column(default=0)
    lease_owner: Mapped[str | None] = mapped_column(String(200))
    lease_until: Mapped[datetime | None]
    cancel_requested: Mapped[bool] = mapped_column(default=False)
    progress_stage: Mapped[str | None] = mapped_column(Text)
    progress_done: Mapped[int] = mapped_column(default=0)
    progress_total: Mapped[int] = mapped_column(default=0)
    progress_rate: Mapped[float | None]

    created_at: Mapped[datetime] = mapped_column(default=database_now())
    started_at: Mapped[datetime | None]
    claimed_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    error: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


def job_rules() -> tuple[SchemaItem, ...]:
    """Return the indexes that the queue reads and the rules that no job breaks, for one table."""
    return (
        Index(None, "status", "tenant_id", "created_at", "id"),
        Index(None, "tenant_id", "claimed_at"),
        Index(None, "tenant_id", "row_bytes"),
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
