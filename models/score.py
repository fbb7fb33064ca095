"""Scores: how well a measure or a baseline tells hits from misses."""

from enum import StrEnum
from uuid import UUID

from sqlalchemy import CheckConstraint, Enum, ForeignKeyConstraint, String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class SubjectKind(StrEnum):
    """Whether a score judges a measure's bin table or a baseline."""

    measure = "measure"
    baseline = "baseline"


class ScorePhase(StrEnum):
    """On which data a score was taken."""

    cross_validation = "cross_validation"
    evaluation = "evaluation"


class Score(Base):
    """One score of one subject; a null number is one that the data could not define."""

    __tablename__ = "score"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "calibration_id"],
            ["calibration.tenant_id", "calibration.id"],
            ondelete="CASCADE",
        ),
        CheckConstraint("k >= 1", name="k"),
        CheckConstraint("folds >= 0", name="folds"),
        CheckConstraint("(phase = 'cross_validation') = (folds IS NOT NULL)", name="phase_folds"),
        CheckConstraint("phase = 'cross_validation' OR mean IS NULL", name="phase_mean"),
        CheckConstraint("phase = 'evaluation' OR value IS NULL", name="phase_value"),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    calibration_id: Mapped[UUID] = mapped_column(primary_key=True)
    k: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    subject_kind: Mapped[SubjectKind] = mapped_column(
        Enum(
            SubjectKind, native_enum=False, create_constraint=True, name="subject_kind", length=16
        ),
        primary_key=True,
    )
    subject: Mapped[str] = mapped_column(String(100), primary_key=True)
    phase: Mapped[ScorePhase] = mapped_column(
        Enum(ScorePhase, native_enum=False, create_constraint=True, name="phase", length=32),
        primary_key=True,
    )
    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    mean: Mapped[float | None]
    std: Mapped[float | None]
    folds: Mapped[int | None]
    pooled: Mapped[float | None]
    value: Mapped[float | None]
