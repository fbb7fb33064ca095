"""What a tenant has at a glance: its names, and the jobs under way."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, and_, case, func, select
from sqlalchemy.orm import Session

from models import (
    UNFINISHED,
    Calibration,
    CalibrationName,
    Evaluation,
    Job,
    JobStatus,
    Score,
)

# Of the scores by which names are compared at a glance.
RAW = "raw_softmax"
ERROR = "ece_15"


@dataclass(frozen=True)
class NameRow:
    """A name, and the version that it means: its promoted one, else its newest that succeeded.

    ``raw_error`` and ``error`` are the calibration errors of Top-1, cross-validated, of the model's
    own softmax and of what is served; None where nothing was judged.
    """

    name: str
    n_versions: int
    promoted_version: int | None
    id: UUID
    version: int
    status: JobStatus
    accuracy: dict[str, float] | None
    serve: dict[str, str] | None
    n_samples: int | None
    created_at: datetime
    raw_error: float | None
    error: float | None


@dataclass(frozen=True)
class JobRow:
    """A job under way: a calibration, or an evaluation of one, which has a name then."""

    calibration_id: UUID
    name: str
    version: int
    evaluation: str | None
    status: JobStatus
    is_to_stop: bool
    stage: str | None
    done: int
    total: int
    rate: float | None
    created_at: datetime


def name_rows(session: Session, tenant_id: UUID, *, limit: int) -> list[NameRow]:
    """Return up to ``limit`` names, those with the newest version first."""
    preference = case(
        (Calibration.version == CalibrationName.promoted_version, 0),
        (Calibration.status == "succeeded", 1),
        else_=2,
    )
    ranked = (
        select(
            Calibration.id,
            CalibrationName.promoted_version,
            func.count().over(partition_by=Calibration.name).label("n_versions"),
            func.max(Calibration.created_at).over(partition_by=Calibration.name).label("newest"),
            func.row_number()
            .over(partition_by=Calibration.name, order_by=(preference, Calibration.version.desc()))
            .label("rank"),
        )
        .join(
            CalibrationName,
            and_(
                CalibrationName.tenant_id == Calibration.tenant_id,
                CalibrationName.name == Calibration.name,
            ),
        )
        .where(Calibration.tenant_id == tenant_id)
        .subquery()
    )
    meant = session.execute(
        select(
            Calibration.id,
            Calibration.name,
            Calibration.version,
            Calibration.status,
            Calibration.accuracy,
            Calibration.serve,
            Calibration.data,
            Calibration.created_at,
            ranked.c.n_versions,
            ranked.c.promoted_version,
        )
        .join(ranked, ranked.c.id == Calibration.id)
        .where(Calibration.tenant_id == tenant_id, ranked.c.rank == 1)
        .order_by(ranked.c.newest.desc(), Calibration.name)
        .limit(limit)
    ).all()
    errors = _errors(session, tenant_id, [row.id for row in meant])
    return [
        NameRow(
            name=row.name,
            n_versions=row.n_versions,
            promoted_version=row.promoted_version,
            id=row.id,
            version=row.version,
            status=row.status,
            accuracy=row.accuracy,
            serve=row.serve,
            n_samples=row.data.get("samples"),
            created_at=row.created_at,
            raw_error=errors.get((row.id, "baseline", RAW)),
            error=errors.get((row.id, "measure", (row.serve or {}).get("1", ""))),
        )
        for row in meant
    ]


def _errors(
    session: Session, tenant_id: UUID, ids: Sequence[UUID]
) -> dict[tuple[UUID, str, str], float | None]:
    found = session.execute(
        select(Score.calibration_id, Score.subject_kind, Score.subject, Score.mean).where(
            Score.tenant_id == tenant_id,
            Score.calibration_id.in_(ids),
            Score.k == 1,
            Score.phase == "cross_validation",
            Score.name == ERROR,
            Score.subject_kind.in_(("measure", "baseline")),
        )
    )
    return {(row.calibration_id, row.subject_kind, row.subject): row.mean for row in found}


def job_rows(session: Session, tenant_id: UUID, *, limit: int) -> list[JobRow]:
    """Return up to ``limit`` jobs that wait or run, the oldest first."""
    calibrations = session.execute(
        _jobs(Calibration)
        .add_columns(Calibration.id.label("calibration_id"))
        .add_columns(Calibration.name, Calibration.version)
        .where(Calibration.tenant_id == tenant_id, Calibration.status.in_(UNFINISHED))
        .order_by(Calibration.created_at, Calibration.id)
        .limit(limit)
    ).all()
    evaluations = session.execute(
        _jobs(Evaluation)
        .add_columns(Evaluation.calibration_id, Evaluation.name.label("evaluation"))
        .add_columns(Calibration.name, Calibration.version)
        .join(
            Calibration,
            and_(
                Calibration.tenant_id == Evaluation.tenant_id,
                Calibration.id == Evaluation.calibration_id,
            ),
        )
        .where(Evaluation.tenant_id == tenant_id, Evaluation.status.in_(UNFINISHED))
        .order_by(Evaluation.created_at, Evaluation.id)
        .limit(limit)
    ).all()
    found = [
        JobRow(
            calibration_id=row.calibration_id,
            name=row.name,
            version=row.version,
            evaluation=getattr(row, "evaluation", None),
            status=row.status,
            is_to_stop=row.cancel_requested,
            stage=row.progress_stage,
            done=row.progress_done,
            total=row.progress_total,
            rate=row.progress_rate,
            created_at=row.created_at,
        )
        for row in (*calibrations, *evaluations)
    ]
    return sorted(found, key=lambda job: job.created_at)[:limit]


def _jobs(table: type[Job]) -> Select[*tuple[Any, ...]]:
    return select(
        table.status,
        table.cancel_requested,
        table.progress_stage,
        table.progress_done,
        table.progress_total,
        table.progress_rate,
        table.created_at,
    )
