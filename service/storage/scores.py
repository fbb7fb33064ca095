"""Scores as rows; a score that the data could not define is a row all the same, of nulls."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from models import Score, ScorePhase, SubjectKind
from service.core.fit_result import BaselineFit, MeasureFit
from service.core.paired import PairedDifference

Judged: TypeAlias = MeasureFit | BaselineFit


def score_rows(
    *,
    tenant_id: UUID,
    calibration_id: UUID,
    k: int,
    measures: Mapping[str, Judged],
    baselines: Mapping[str, BaselineFit],
    oracle: BaselineFit | None = None,
) -> list[Score]:
    """Return the rows of one event; the order of the mappings is kept, the oracle comes last.

    A baseline's paired differences stand beside the scores that they are differences of.
    """
    rows = [
        row for subject, judged in measures.items() for row in _rows("measure", subject, judged)
    ]
    for subject, baseline in baselines.items():
        found = list(_rows("baseline", subject, baseline))
        _add_differences(found, "cross_validation", baseline.difference)
        _add_differences(found, "evaluation", baseline.evaluation_difference)
        rows += found
    if oracle is not None:
        rows += _rows("oracle", oracle.name, oracle)
    for position, row in enumerate(rows):
        row.tenant_id, row.calibration_id, row.k = tenant_id, calibration_id, k
        row.position = position
    return rows


def scores_of(session: Session, tenant_id: UUID, calibration_id: UUID) -> Sequence[Score]:
    """Return the scores of a calibration: by event, as they were given."""
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


def _add_differences(
    rows: Sequence[Score], phase: ScorePhase, differences: Mapping[str, PairedDifference]
) -> None:
    """Put each difference into the row of its score.

    Raises
    ------
    KeyError
        If there is no such score: none is dropped in silence.
    """
    by_name = {row.name: row for row in rows if row.phase == phase}
    for name, difference in differences.items():
        row = by_name[name]
        row.difference = difference.mean
        row.difference_error = difference.standard_error
        row.difference_pairs = difference.pairs
