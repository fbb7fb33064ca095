"""Orphans: files that nothing refers to and no job is about to."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from uuid import UUID

from sqlalchemy import select, union_all

from models import UNFINISHED, Artifact, Calibration, Evaluation, Tenant, database_now
from service.storage.artifact_keys import calibration_of, keys_of
from service.storage.artifacts import ArtifactStore
from service.storage.database import Database
from service.storage.stored_files import StoredFile

PAGE = 1000


@dataclass(frozen=True)
class Swept:
    """How many files there were, and how many of them are gone."""

    files: int
    removed: int


def remove_orphans(
    database: Database,
    artifacts: ArtifactStore,
    *,
    older_than: timedelta,
    go_on: Callable[[], bool] = lambda: True,
) -> Swept:
    """Delete the files that no row of any tenant refers to, of calibrations that are quiet.

    A file is written before its row: a process that dies in between leaves such files, and so
    does one that dies while it deletes, or a job that was lost and writes on. Those of a
    calibration are left alone for as long as it may publish, or an evaluation of it may, and until
    nothing has been written for it for ``older_than``: it may be about to be created.

    Nothing of the store is kept in mind but a page of it. Of two that sweep at once each deletes
    what the other has not yet.
    """
    sweep = _Sweep(database, artifacts, _time(database) - older_than)
    files = removed = 0
    handled: UUID | None = None
    for page in _pages(artifacts.files()):
        files += len(page)
        suspects = sweep.suspects(page)
        # A large one fills many pages, which come one after the other.
        removed += sweep.clear(found for found in suspects if found != handled)
        handled = suspects[-1] if suspects else None
        if not go_on():
            break
    return Swept(files, removed)


@dataclass(frozen=True)
class _Sweep:
    database: Database
    artifacts: ArtifactStore
    latest: datetime

    def suspects(self, page: Collection[StoredFile]) -> list[UUID]:
        """Return whose files may be orphans, in the order of the page."""
        old = [file.key for file in page if file.modified <= self.latest]
        return list(dict.fromkeys(calibration_of(key) for key in self._unreferred(old)))

    def clear(self, calibration_ids: Iterable[UUID]) -> int:
        """Delete the orphans of those calibrations that are quiet; return how many there were."""
        removed = 0
        for page in _pages(chain.from_iterable(map(self._if_quiet, calibration_ids))):
            orphans = self._unreferred([file.key for file in page])
            self.artifacts.delete(orphans)
            removed += len(orphans)
        return removed

    def _if_quiet(self, calibration_id: UUID) -> Iterable[StoredFile]:
        """Return the files of a calibration if nothing was written for it of late, else none.

        They are listed anew: of one that spreads over pages, each page shows a part.
        """
        prefix = keys_of(calibration_id)
        files = self.artifacts.files(prefix)
        first = list(islice(files, PAGE))
        if any(file.modified > self.latest for file in chain(first, files)):
            return ()
        return first if len(first) < PAGE else self.artifacts.files(prefix)

    def _unreferred(self, keys: Collection[str]) -> list[str]:
        """Return the keys that have no row, but for those of calibrations that may publish.

        Both in one state of the database: a job that ends between two would be finished in one and
        have no files in the other.
        """
        ids = {calibration_of(key) for key in keys}
        with self.database.reading() as session:
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
            # The tenants are named for the index, which begins with them.
            named = set(
                session.scalars(
                    select(Artifact.key).where(
                        Artifact.tenant_id.in_(select(Tenant.id)), Artifact.key.in_(keys)
                    )
                )
            )
        return [key for key in keys if key not in named and calibration_of(key) not in unfinished]


def _time(database: Database) -> datetime:
    with database.reading() as session:
        return session.scalars(select(database_now())).one()


def _pages(files: Iterable[StoredFile]) -> Iterator[list[StoredFile]]:
    left = iter(files)
    while page := list(islice(left, PAGE)):
        yield page
