"""Tenants: whose calibrations these are."""

from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base

DEFAULT_TENANT = "default"


class Tenant(Base):
    """An owner of calibrations; the first migration makes the one of a fresh installation."""

    __tablename__ = "tenant"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)


class TenantLimit(Base):
    """Limits of one tenant: null is what the settings say, 0 is none."""

    __tablename__ = "tenant_limit"
    __table_args__ = (
        CheckConstraint("requests_per_second >= 0", name="requests_per_second"),
        CheckConstraint("rows_per_minute >= 0", name="rows_per_minute"),
        CheckConstraint("stored_bytes >= 0", name="stored_bytes"),
        CheckConstraint("jobs >= 0", name="jobs"),
    )

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenant.id"), primary_key=True)
    requests_per_second: Mapped[int | None] = mapped_column(BigInteger)
    rows_per_minute: Mapped[int | None] = mapped_column(BigInteger)
    stored_bytes: Mapped[int | None] = mapped_column(BigInteger)
    jobs: Mapped[int | None] = mapped_column(BigInteger)
