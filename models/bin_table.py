"""Bin tables: what one measure says about one event."""

from typing import Any, Literal, TypeAlias
from uuid import UUID

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    ForeignKeyConstraint,
    Index,
    String,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column, relationship

from models.base import Base, one_of


class Bin(Base):
    """Uncertainties in (lower, upper] and what was seen there; null edges are infinite.

    ``odds_ratio`` is null if it is too large for a number.
    """

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
    odds_ratio: Mapped[float | None]


Lookup: TypeAlias = Literal["smooth", "interpolated", "step"]


class BinTable(Base):
    """The bins of one (event, measure) of a calibration, how they were made and what they show.

    ``quantile_bins`` are those before any were pooled: fewer than ``requested_bins`` where equal
    values share one. The curves are long, and read only where they are asked for. ``smooth`` holds
    the knots of a smooth lookup, ``learned`` the formula of a learned measure.
    """

    __tablename__ = "bin_table"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "calibration_id"],
            ["calibration.tenant_id", "calibration.id"],
            ondelete="CASCADE",
        ),
        UniqueConstraint("tenant_id", "id"),
        UniqueConstraint("tenant_id", "calibration_id", "k", "measure"),
        Index(
            "uq_bin_table_served",
            "tenant_id",
            "calibration_id",
            "k",
            unique=True,
            sqlite_where=text("served"),
            postgresql_where=text("served"),
        ),
        CheckConstraint("k >= 1", name="k"),
        CheckConstraint("requested_bins >= 1", name="requested_bins"),
        CheckConstraint("quantile_bins >= 1", name="quantile_bins"),
        CheckConstraint("interval_level > 0 AND interval_level < 1", name="interval_level"),
        CheckConstraint("prior_accuracy > 0 AND prior_accuracy < 1", name="prior_accuracy"),
        CheckConstraint("prior_strength > 0", name="prior_strength"),
        CheckConstraint("n_samples >= 0", name="n_samples"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    tenant_id: Mapped[UUID]
    calibration_id: Mapped[UUID]
    k: Mapped[int]
    measure: Mapped[str] = mapped_column(String(100))
    column: Mapped[str] = mapped_column(String(100))
    served: Mapped[bool]
    requested_bins: Mapped[int]
    quantile_bins: Mapped[int]
    lookup: Mapped[Lookup] = mapped_column(one_of(Lookup, name="lookup"))
    monotone: Mapped[bool]
    interval_method: Mapped[str] = mapped_column(String(50))
    interval_level: Mapped[float]
    interval_simultaneous: Mapped[bool]
    prior_accuracy: Mapped[float]
    prior_strength: Mapped[float]
    prior_degenerate: Mapped[bool]
    n_samples: Mapped[int] = mapped_column(BigInteger)
    candidates: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    analysis: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    curves: Mapped[dict[str, Any]] = mapped_column(
        JSON, default=dict, deferred=True, deferred_raiseload=True
    )

    smooth: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    learned: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))

    bins: Mapped[list[Bin]] = relationship(
        lazy="raise", order_by=lambda: Bin.index, passive_deletes="all"
    )
