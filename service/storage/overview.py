"""Overview of a tenant: its names and its unfinished jobs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, get_args
from uuid import UUID

from sqlalchemy import (
    Select,
    SQLColumnExpression,
    and_,
    func,
    literal,
    literal_column,
    null,
    select,
    union_all,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from models import (
    UNFINISHED,
    BinTable,
    Calibration,
    CalibrationName,
    Evaluation,
    Job,
    JobStatus,
    database_now,
)
from service.storage.database import Database
from service.storage.tenants import ALL_TENANTS

_KINDS: Mapping[str, type[Calibration | Evaluation]] = {
    "calibration": Calibration,
    "evaluation": Evaluation,
}
_COUNTS = union_all(
    *(
        select(literal(kind), table.status, func.count()).group_by(table.status)
        for kind, table in _KINDS.items()
    )
)

_OLDEST_QUEUED = select(
    database_now(),
    *(
        select(func.min(table.created_at)).where(table.status == "queued").scalar_subquery()
        for table in _KINDS.values()
    ),
)


def job_counts(session: Session) -> dict[tuple[str, str], int]:
    """Return the number of jobs of all tenants by kind and status, including zeros."""
    counts = {(kind, status): 0 for kind in _KINDS for status in get_args(JobStatus)}
    for kind, status, count in session.execute(_COUNTS):
        counts[kind, status] = count
    return counts


def queue_ages(session: Session) -> dict[str, float]:
    """Return by kind the seconds since the oldest queued job was submitted; 0 without one."""
    now, *oldest = session.execute(_OLDEST_QUEUED).one()
    return {
        kind: max(0.0, (now - submitted).total_seconds()) if submitted else 0.0
        for kind, submitted in zip(_KINDS, oldest, strict=True)
    }


@dataclass(frozen=True)
class JobView:
    """The status and progress of a job."""

    status: JobStatus
    progress_stage: str | None
    progress_done: int
    progress_total: int
    progress_rate: float | None


_COLUMNS = tuple(field.name for field in fields(JobView))


def view_of(row: Job) -> JobView:
    """Return the status and progress of a whole row."""
    return JobView(*(getattr(row, name) for name in _COLUMNS))


# Scores by which names are compared.
RAW = "raw_softmax"
ERROR = "ece_15"


@dataclass(frozen=True)
class NameRow:
    """A name, and the version that it means: the promoted one, else the newest that succeeded.

    ``accuracy``, ``raw_error`` and ``served_error`` are of Top-1: the accuracy, and the calibration
    errors of the model's softmax and of the served probability. They are those of the evaluation
    set if there is one, else the accuracy of the calibration set and cross-validated errors; None
    without scores. ``failed_version`` is a failed version that is newer than this one.
    """

    name: str
    n_versions: int
    promoted_version: int | None
    id: UUID
    version: int
    status: JobStatus
    serve: dict[str, str] | None
    findings: list[dict[str, Any]]
    error: dict[str, Any] | None
    n_samples: int | None
    created_at: datetime
    failed_version: int | None
    accuracy: float | None
    raw_error: float | None
    served_error: float | None

    def findings_of(self, level: str) -> list[dict[str, Any]]:
        """Return the findings of a level."""
        return [found for found in self.findings if found["level"] == level]


@dataclass(frozen=True)
class JobRow:
    """An unfinished job: a calibration, or an evaluation, whose name is ``evaluation``."""

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


def name_rows(session: Session, tenant_id: UUID, *, limit: int, search: str = "") -> list[NameRow]:
    """Return up to ``limit`` names that contain a text, those with the newest version first."""
    # Each part reads an index or few rows: a tenant may have tens of thousands of versions.
    counted = (
        select(
            Calibration.name,
            func.count().label("n_versions"),
            func.max(Calibration.version).label("last"),
        )
        .where(
            Calibration.tenant_id == tenant_id,
            Calibration.name.icontains(search, autoescape=True),
        )
        .group_by(Calibration.name)
        .subquery()
    )
    other = aliased(Calibration)
    of_tenant = select(other.created_at).where(other.tenant_id == tenant_id).limit(1)
    newest = of_tenant.where(other.name == counted.c.name, other.version == counted.c.last)
    named = (
        select(
            counted, CalibrationName.promoted_version, newest.scalar_subquery().label("created_at")
        )
        .join(CalibrationName, CalibrationName.name == counted.c.name)
        .where(CalibrationName.tenant_id == tenant_id)
        .order_by(literal_column("created_at").desc(), counted.c.name)
        .limit(limit)
        .subquery()
    )
    versions = of_tenant.with_only_columns(other.version).where(other.name == named.c.name)
    versions = versions.order_by(other.version.desc())
    succeeded = versions.where(other.status == "succeeded").scalar_subquery()
    failed = versions.where(other.status == "failed", other.version > Calibration.version)
    version = func.coalesce(named.c.promoted_version, succeeded, named.c.last)
    meant = session.execute(
        select(
            Calibration.id,
            Calibration.name,
            Calibration.version,
            Calibration.status,
            Calibration.serve,
            Calibration.findings,
            Calibration.error,
            Calibration.data["samples"].as_integer().label("n_samples"),
            Calibration.created_at,
            named.c.n_versions,
            named.c.promoted_version,
            failed.scalar_subquery().label("failed_version"),
            func.coalesce(
                Calibration.model_scores["evaluation", "accuracy", "1"].as_float(),
                Calibration.accuracy["1"].as_float(),
            ).label("accuracy"),
            _error(Calibration.baselines, "1", RAW).label("raw_error"),
        )
        .join(named, and_(Calibration.name == named.c.name, Calibration.version == version))
        .where(Calibration.tenant_id == tenant_id)
        .order_by(named.c.created_at.desc(), Calibration.name)
    ).all()
    ids = [row.id for row in meant]
    served = _served_errors(session, tenant_id, ids)
    return [NameRow(**row._asdict(), served_error=served.get(row.id)) for row in meant]


def _served_errors(
    session: Session, tenant_id: UUID, ids: Sequence[UUID]
) -> dict[UUID, float | None]:
    """Return the calibration errors of the tables that serve Top-1."""
    query: Select[UUID, float | None] = select(
        BinTable.calibration_id, _error(BinTable.analysis).label("error")
    ).where(
        BinTable.tenant_id == tenant_id,
        BinTable.calibration_id.in_(ids),
        BinTable.k == 1,
        BinTable.served,
    )
    return {row.calibration_id: row.error for row in session.execute(query)}


def _error(scored: InstrumentedAttribute[Any], *path: str) -> SQLColumnExpression[float]:
    """Return the calibration error of scores in a document: on the evaluation set if there is one.

    Otherwise it is the cross-validated one.
    """
    return func.coalesce(
        scored[(*path, "evaluation", ERROR)].as_float(),
        scored[(*path, "scores", ERROR, "mean")].as_float(),
    )


def job_rows(session: Session, tenant_id: UUID, *, limit: int) -> list[JobRow]:
    """Return up to ``limit`` jobs that wait or run, the oldest first."""
    calibration = (Calibration.name, Calibration.version)
    calibrations = select(Calibration.id, *calibration, null(), *_progress(Calibration))
    evaluations = select(
        Evaluation.calibration_id, *calibration, Evaluation.name, *_progress(Evaluation)
    ).join(
        Calibration,
        and_(
            Calibration.tenant_id == Evaluation.tenant_id,
            Calibration.id == Evaluation.calibration_id,
        ),
    )
    found = [
        JobRow(*row)
        for query, table in ((calibrations, Calibration), (evaluations, Evaluation))
        for status in UNFINISHED  # one by one, as the index of the queue has them
        for row in session.execute(
            query.where(table.tenant_id == tenant_id, table.status == status)
            .order_by(table.created_at, table.id)
            .limit(limit)
        )
    ]
    return sorted(found, key=lambda job: job.created_at)[:limit]


def _progress(table: type[Job]) -> tuple[SQLColumnExpression[Any], ...]:
    """Return the columns of a `JobRow` from its status on."""
    return (
        table.status,
        table.cancel_requested,
        table.progress_stage,
        table.progress_done,
        table.progress_total,
        table.progress_rate,
        table.created_at,
    )


@dataclass(frozen=True)
class FollowedJob:
    """The job of a subscription."""

    table: type[Calibration | Evaluation]
    id: UUID


def look_at(database: Database, jobs: Collection[FollowedJob]) -> Mapping[FollowedJob, JobView]:
    """Return the status and progress of jobs; deleted ones are missing."""
    found: dict[FollowedJob, JobView] = {}
    with database.reading(ALL_TENANTS) as session:
        for table in {job.table for job in jobs}:
            ids = [job.id for job in jobs if job.table is table]
            columns = (getattr(table, name) for name in _COLUMNS)
            rows = session.execute(select(table.id, *columns).where(table.id.in_(ids)))
            found |= {FollowedJob(table, row.id): JobView(*row[1:]) for row in rows}
    return found
