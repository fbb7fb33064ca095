"""Jobs as the database stores them, read without the service."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, Row, Select, func, make_url, select

from models import Artifact, Bin, BinTable, Calibration, Score
from service.storage.database import make_engine, sqlite_path

NOTHING = (0, 0, 0)
# In the order of the fields of `StoredJob`.
COLUMNS = (
    Calibration.id,
    Calibration.name,
    Calibration.version,
    Calibration.status,
    Calibration.attempt,
    Calibration.lease_owner,
    Calibration.progress_stage,
    Calibration.error,
)


@dataclass(frozen=True)
class StoredJob:
    """A row of a calibration; ``results`` counts its published tables, bins and scores."""

    id: str
    name: str
    version: int
    status: str
    attempt: int
    owner: str | None
    stage: str | None
    error: dict | None
    results: tuple[int, ...]

    @property
    def kind(self) -> str:
        return self.name.rsplit("-", 1)[0]


def stored_jobs(database_url: str) -> list[StoredJob]:
    """Return all calibrations, in one state of the database."""
    return [_job(row) for row in _rows(database_url, _jobs())]


def running_jobs(database_url: str) -> dict[str, str]:
    """Return the owner of each running job, by id."""
    running = select(Calibration.id, Calibration.lease_owner).where(Calibration.status == "running")
    return {str(row.id): row.lease_owner for row in _rows(database_url, running)}


def artifact_keys(database_url: str) -> set[str]:
    """Return the artifact keys in rows."""
    return {row.key for row in _rows(database_url, select(Artifact.key))}


def is_of(pid: int, owner: str | None) -> bool:
    """Return whether an owner of jobs is the process."""
    return owner is not None and owner.split("/")[1] == str(pid)


def half_visible(jobs: Sequence[StoredJob], whole: dict[str, tuple[int, ...]]) -> list[str]:
    """Return the jobs that have published a part; all or nothing is right."""
    return [
        f"{job.name} is {job.status} with {job.results} tables, bins and scores"
        for job in jobs
        if job.results != (whole[job.kind] if job.status == "succeeded" else NOTHING)
    ]


def _job(row: Row) -> StoredJob:
    return StoredJob(str(row.id), *row[1 : len(COLUMNS)], results=tuple(row[len(COLUMNS) :]))


def _jobs() -> Select:
    """Return the query of all jobs; each table is counted once, not once for each job."""
    id_ = BinTable.calibration_id
    counts = [
        select(id_, func.count()).group_by(id_),
        select(id_, func.count()).join(Bin, Bin.bin_table_id == BinTable.id).group_by(id_),
        select(Score.calibration_id, func.count()).group_by(Score.calibration_id),
    ]
    found = [query.subquery(f"counted_{place}") for place, query in enumerate(counts)]
    query = select(*COLUMNS, *(func.coalesce(counted.c.count, 0) for counted in found))
    for counted in found:
        query = query.outerjoin(counted, counted.c.calibration_id == Calibration.id)
    return query


def _rows(database_url: str, query: Select) -> Sequence[Row]:
    """Query the database.

    Of a SQLite file a copy with its log is read: opening the file itself would do the recovery that
    the service must do.
    """
    with _untouched(database_url) as url, _engine(url) as engine, engine.begin() as asked:
        return asked.execute(query).all()


@contextmanager
def _engine(url: str) -> Iterator[Engine]:
    engine = make_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def _untouched(database_url: str) -> Iterator[str]:
    path = sqlite_path(make_url(database_url))
    if path is None:
        yield database_url
        return
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("", "-wal"):
            source = path.with_name(path.name + suffix)
            if source.exists():
                shutil.copy(source, Path(folder) / source.name)
        yield f"sqlite:///{Path(folder) / path.name}"
