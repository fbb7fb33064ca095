"""Scores: how well a measure or a baseline tells hits from misses."""

from typing import Literal, TypeAlias
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, one_of

SubjectKind: TypeAlias = Literal["measure", "baseline", "oracle"]
ScorePhase: TypeAlias = Literal["cross_validation", "evaluation"]


class Score(Base):
    """One score of one subject; a null number is one that the data could not define.

    ``position`` is the order in which a report lists scores. ``difference`` is this baseline's
    score minus that of the served table, taken pair by pair (folds, or samples of the evaluation
    set), with its standard error.
    """

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
        CheckConstraint("subject_kind = 'baseline' OR difference IS NULL", name="difference"),
        CheckConstraint(
            "difference_error IS NULL OR difference IS NOT NULL", name="difference_error"
        ),
        CheckConstraint(
            "(difference IS NULL) = (difference_pairs IS NULL)", name="difference_pairs"
        ),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    calibration_id: Mapped[UUID] = mapped_column(primary_key=True)
    k: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    subject_kind: Mapped[SubjectKind] = mapped_column(
        one_of(SubjectKind, name="subject_kind"),
        primary_key=True,
    )
    subject: Mapped[str] = mapped_column(String(100), primary_key=True)
    phase: Mapped[ScorePhase] = mapped_column(
        one_of(ScorePhase, name="phase"),
        primary_key=True,
    )
    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    position: Mapped[int] = mapped_column(default=0)
    mean: Mapped[float | None]
    std: Mapped[float | None]
    folds: Mapped[int | None]
    pooled: Mapped[float | None]
    value: Mapped[float | None]
    difference: Mapped[float | None]
    difference_error: Mapped[float | None]
    difference_pairs: Mapped[int | None]
