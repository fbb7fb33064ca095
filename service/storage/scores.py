"""Scores as rows; a score that the data could not define is a row all the same, of nulls."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from models import Score, SubjectKind
from service.core.fit_result import BaselineFit, MeasureFit

Judged: TypeAlias = MeasureFit | BaselineFit


def score_rows(
    *,
    tenant_id: UUID,
    calibration_id: UUID,
    k: int,
    measures: Mapping[str, Judged],
    baselines: Mapping[str, Judged],
) -> list[Score]:
    """Return the rows of one event; the order of the mappings is kept."""
    rows = [
        row for subject, judged in measures.items() for row in _rows("measure", subject, judged)
    ]
    for subject, judged in baselines.items():
        rows += _rows("baseline", subject, judged)
    for position, row in enumerate(rows):
        row.tenant_id, row.calibration_id, row.k = tenant_id, calibration_id, k
        row.position = position
    return rows


def scores_of(session: Session, tenant_id: UUID, calibration_id: UUID) -> Sequence[Score]:
    """Return the scores of a calibration: by event, measures before baselines, in their order."""
    return session.scalars(
        select(Score)
        .where(Score.tenant_id == tenant_id, Score.calibration_id == calibration_id)
        .order_by(Score.k, Score.position)
    ).all()


def _rows(kind: SubjectKind, subject: str, judged: Judged) -> Iterator[Score]:
    for name, score in judged.scores.items():
        yield Score(
            subject_kind=kind,
            subject=subject,
            phase="cross_validation",
            name=name,
            mean=score.mean,
            std=score.std,
            folds=score.folds,
            pooled=score.pooled,
        )
    for name, value in (judged.evaluation or {}).items():
        yield Score(subject_kind=kind, subject=subject, phase="evaluation", name=name, value=value)
