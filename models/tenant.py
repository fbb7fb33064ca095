"""Tenants: whose calibrations these are."""

from uuid import UUID

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base

DEFAULT_TENANT = "default"


class Tenant(Base):
    """An owner of calibrations; the first migration makes the one of a fresh installation."""

    __tablename__ = "tenant"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
