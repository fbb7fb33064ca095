"""Deletion of files: released ones, which lost their last row, and orphans, which never had one."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID, uuid4

from sqlalchemy import delete, func, select, union_all

from models import UNFINISHED, Artifact, Calibration, Evaluation, ReleasedFile, Tenant, database_now
from service.storage.artifact_keys import calibration_of, keys_of
from service.storage.artifact_store import ArtifactStore, StoredFile
from service.storage.database import Database
from service.storage.tenants import ALL_TENANTS

PAGE = 1000


@dataclass(frozen=True)
class Swept:
    """How many files the store had, and how many were deleted."""

    files: int
    removed: int


def remove_released(database: Database, artifacts: ArtifactStore, *, older_than: timedelta) -> int:
    """Delete the files whose last row went ``older_than`` ago or earlier; return their number.

    Nobody can name such a file again. Until then, a read that began before its row went uses it.
    """
    with database.reading(ALL_TENANTS) as session:
        latest = session.scalars(select(database_now(-older_than.total_seconds()))).one()
        named = select(Artifact.key).where(
            Artifact.tenant_id == ReleasedFile.tenant_id, Artifact.key == ReleasedFile.key
        )
        last = select(ReleasedFile.key, func.max(ReleasedFile.released_at)).where(~named.exists())
        rows = session.execute(last.group_by(ReleasedFile.tenant_id, ReleasedFile.key))
        keys = [key for key, released_at in rows if released_at <= latest]
    artifacts.delete(keys)
    with database.session(ALL_TENANTS, invalidates_cache=False) as session:
        session.execute(delete(ReleasedFile).where(ReleasedFile.released_at <= latest))
    return len(keys)


def remove_orphans(
    database: Database,
    artifacts: ArtifactStore,
    *,
    older_than: timedelta,
    go_on: Callable[[], bool] = lambda: True,
) -> Swept:
    """Delete the released files, and those without a row of calibrations without recent files.

    A file is written before its row. Files without a row remain if a process dies in between, if
    an upload is refused, or if a job stores something that it does not publish. The files of a
    calibration stay while it or one of its evaluations may still publish, and until its newest
    file is older than ``older_than``: its row may be about to be created.

    Memory holds a page of files and the files of one calibration. Several processes may do this at
    the same time.
    """
    # First: on a full disk it makes room for the file that tells the time.
    files, removed = 0, remove_released(database, artifacts, older_than=older_than)
    sweep = _Sweep(database, artifacts, _time(artifacts) - older_than)
    swept: UUID | None = None
    for page in _pages(artifacts.files()):
        files += len(page)
        for calibration_id in sweep.suspects(page):
            # The files of a large calibration fill several consecutive pages.
            if calibration_id != swept:
                removed += sweep.clear(calibration_id)
                swept = calibration_id
        if not go_on():
            break
    return Swept(files, removed)


@dataclass(frozen=True)
class _Sweep:
    database: Database
    artifacts: ArtifactStore
    latest: datetime

    def suspects(self, page: Collection[StoredFile]) -> list[UUID]:
        """Return the calibrations that may have orphans on the page, in its order."""
        old = [file.key for file in page if file.modified <= self.latest]
        return list(dict.fromkeys(map(calibration_of, self._without_row(old))))

    def clear(self, calibration_id: UUID) -> int:
        """Delete the orphans of a calibration without recent files; return how many there were."""
        files = list(self.artifacts.files(keys_of(calibration_id)))
        if any(file.modified > self.latest for file in files):
            return 0
        pages = ([file.key for file in page] for page in _pages(files))
        orphans = [key for keys in pages for key in self._without_row(keys)]
        self.artifacts.delete(orphans)
        return len(orphans)

    def _without_row(self, keys: Collection[str]) -> list[str]:
        """Return the keys that no row names or named, but for calibrations that may still publish.

        Both are read in one snapshot: a job may end between two, and would then be finished in one
        and without files in the other.
        """
        ids = {calibration_of(key) for key in keys}
        with self.database.reading(ALL_TENANTS) as session:
            unfinished = set(
                session.scalars(
                    union_all(
                        select(Calibration.id).where(
                            Calibration.id.in_(ids), Calibration.status.in_(UNFINISHED)
                        ),
                        select(Evaluation.calibration_id).where(
                            Evaluation.calibration_id.in_(ids), Evaluation.status.in_(UNFINISHED)
                        ),
                    )
                )
            )
            # The condition on tenants makes the index usable, which begins with the tenant.
            named = set(
                session.scalars(
                    union_all(
                        *(
                            select(table.key).where(
                                table.tenant_id.in_(select(Tenant.id)), table.key.in_(keys)
                            )
                            for table in (Artifact, ReleasedFile)
                        )
                    )
                )
            )
        return [key for key in keys if key not in named and calibration_of(key) not in unfinished]


def _time(artifacts: ArtifactStore) -> datetime:
    """Return the time by the clock of the store, which may be an hour behind the database's."""
    folder = keys_of(uuid4())
    artifacts.put_bytes(f"{folder}/time", b"")
    (file,) = artifacts.files(folder)
    artifacts.delete([file.key])
    return file.modified


def _pages(files: Iterable[StoredFile]) -> Iterator[list[StoredFile]]:
    left = iter(files)
    while page := list(islice(left, PAGE)):
        yield page
