"""Files go with their calibrations while a backup copies them: the cut is of another moment."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from databases import BOTH_DIALECTS
from object_stores import WrappedStore
from stored_rows import (
    StoredPlace,
    assert_files_are_those_of_the_rows,
    finished_calibration,
    submit_held_up,
    tenant_of,
)

from service.backups.back_up import FREE_ROUNDS, back_up
from service.backups.restore import restore
from service.storage.artifact_rows import NewArtifact
from service.storage.calibrations import CalibrationRepository
from service.storage.tenants import ALL_TENANTS


@pytest.fixture
def place(database_url, tmp_path):
    return StoredPlace(database_url, tmp_path / "artifacts")


@pytest.fixture
def database(place):
    with place.opened() as opened:
        yield opened


def keep(database, artifacts, name):
    """Add a calibration with a file; return its key."""
    row = finished_calibration(database, name)
    key = f"calibrations/{row.id}/records-0"
    stored = artifacts.put_bytes(key, name.encode() * 1000)
    with database.session(ALL_TENANTS) as session:
        file = NewArtifact("records", 0, "records", key, stored.sha256, stored.size)
        session.add(file.row(row.tenant_id, row.id))
    return key


def remove(database, artifacts, key):
    with database.session(ALL_TENANTS) as session:
        repository = CalibrationRepository(session, tenant_of(database))
        keys = repository.delete(uuid.UUID(key.split("/")[1]))
    assert keys == [key]
    artifacts.delete(keys)


class ShortLived(WrappedStore):
    """A store of which a file goes just before it is copied, and another one comes.

    It is deleted by another thread, for which ``wait`` waits or not.
    """

    def __init__(self, artifacts, database, wait):
        super().__init__(artifacts)
        self._database, self._wait = database, wait
        self.rounds = 0
        self.key = keep(database, artifacts, "round 0")

    def unverified_path(self, key):
        if key == self.key:
            self.rounds += 1
            if self._wait(self.rounds, lambda: remove(self._database, self, key)):
                self.key = keep(self._database, self, f"round {self.rounds}")
        return super().unverified_path(key)


def names_in(place):
    return sorted(row["name"] for row in place.rows()["calibration"])


def restored(folder, into):
    """Restore the backup of a folder, with the files of its rows; return where it is."""
    restore(into.url, into.artifacts, folder / "backup")
    assert_files_are_those_of_the_rows(into)
    return into


def test_a_later_moment_is_taken_if_files_go(place, database, empty_place, dialect, tmp_path):
    keep(database, place.artifacts, "stays")

    def twice(rounds, delete):
        if rounds <= 2:
            delete()
        return rounds <= 2

    artifacts = ShortLived(place.artifacts, database, twice)
    back_up(database, artifacts, tmp_path / "backup")
    assert artifacts.rounds == 3
    assert names_in(restored(tmp_path, empty_place(dialect, migrated=True))) == ["round 2", "stays"]


@BOTH_DIALECTS
def test_whoever_deletes_files_waits_at_last(place, database, empty_place, dialect, tmp_path):
    waiting = []

    def until_held(rounds, delete):
        if rounds <= FREE_ROUNDS:
            delete()
            return True
        waiting.append(submit_held_up(pool, delete, database.engine.url))
        return False

    with ThreadPoolExecutor(1) as pool:
        artifacts = ShortLived(place.artifacts, database, until_held)
        back_up(database, artifacts, tmp_path / "backup")
        waiting[0].result(30)
    into = restored(tmp_path, empty_place(dialect, migrated=True))
    assert names_in(into) == [f"round {FREE_ROUNDS}"]
    assert names_in(place) == []
    assert place.artifacts.keys() == []
