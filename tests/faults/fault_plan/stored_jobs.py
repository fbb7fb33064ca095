"""Jobs as the database stores them, read without the service."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schema_rows import connected
from sqlalchemy import Row, Select, func, make_url, select

from models import Artifact, Bin, BinTable, Calibration
from service.storage.database import sqlite_path

NOTHING = (0, 0)
# In the order of the fields of `StoredJob`.
NAMES = ("id", "name", "version", "status", "attempt", "lease_owner", "progress_stage", "error")
COLUMNS = [getattr(Calibration, name) for name in NAMES]


@dataclass(frozen=True)
class StoredJob:
    """A row of a calibration; ``results`` counts its published tables and bins."""

    id: str
    name: str
    version: int
    status: str
    attempt: int
    owner: str | None
    stage: str | None
    error: dict[str, Any] | None
    results: tuple[int, ...]

    @property
    def kind(self) -> str:
        return self.name.rsplit("-", 1)[0]

    def is_of(self, pid: int) -> bool:
        """Return whether the owner of the job is the process."""
        return self.owner is not None and self.owner.split("/")[1] == str(pid)


def stored_jobs(database_url: str) -> list[StoredJob]:
    """Return all calibrations with their numbers of results, in one state of the database."""
    tables = select(func.count()).where(BinTable.calibration_id == Calibration.id)
    bins = tables.join_from(BinTable, Bin, Bin.bin_table_id == BinTable.id)
    counts = [query.scalar_subquery() for query in (tables, bins)]
    rows = _rows(database_url, select(*COLUMNS, *counts))
    return [StoredJob(str(row.id), *row[1:-2], results=tuple(row[-2:])) for row in rows]


def artifact_keys(database_url: str) -> set[str]:
    """Return the artifact keys in rows."""
    return {row.key for row in _rows(database_url, select(Artifact.key))}


def half_visible(jobs: Sequence[StoredJob], whole: dict[str, tuple[int, ...]]) -> list[str]:
    """Return the jobs that have published a part; all or nothing is right."""
    return [
        f"{job.name} is {job.status} with {job.results} tables and bins"
        for job in jobs
        if job.results != (whole[job.kind] if job.status == "succeeded" else NOTHING)
    ]


def _rows(database_url: str, query: Select[Any]) -> Sequence[Row[Any]]:
    """Query the database.

    Of a SQLite file a copy with its log is read: opening the file itself would do the recovery that
    the service must do.
    """
    with _untouched(database_url) as url, connected(url) as connection:
        return connection.execute(query).all()


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
