"""Bins: the rows of a bin table."""

from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKeyConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class Bin(Base):
    """Uncertainties in (lower, upper] and what was seen there; null edges are infinite."""

    __tablename__ = "bin"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "bin_table_id"],
            ["bin_table.tenant_id", "bin_table.id"],
            ondelete="CASCADE",
        ),
        CheckConstraint('"index" >= 0', name="index"),
        CheckConstraint("lower < upper", name="edges"),
        CheckConstraint("hits BETWEEN 0 AND count", name="hits"),
        CheckConstraint("interval_lower >= 0 AND interval_upper <= 1", name="interval"),
        CheckConstraint(
            "probability BETWEEN interval_lower AND interval_upper", name="probability"
        ),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    bin_table_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    index: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    lower: Mapped[float | None]
    upper: Mapped[float | None]
    count: Mapped[int] = mapped_column(BigInteger)
    hits: Mapped[int] = mapped_column(BigInteger)
    probability: Mapped[float]
    interval_lower: Mapped[float]
    interval_upper: Mapped[float]
    mean_uncertainty: Mapped[float | None]
    odds_ratio: Mapped[float]
