"""A file that goes while a backup copies files: the backup is of a later moment."""

import uuid
from datetime import timedelta

import pytest
from object_stores import WrappedStore
from stored_rows import (
    StoredPlace,
    assert_files_are_those_of_the_rows,
    finished_calibration,
    tenant_of,
)

from service.backups.back_up import back_up
from service.backups.restore import restore
from service.storage.artifact_rows import NewArtifact
from service.storage.calibrations import CalibrationRepository
from service.storage.orphans import remove_released
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


def delete(database, key):
    with database.session(ALL_TENANTS) as session:
        calibrations = CalibrationRepository(session, tenant_of(database))
        calibrations.delete(uuid.UUID(key.split("/")[1]))


class ShortLived(WrappedStore):
    """A store of which a file goes just before it is copied, twice, and another one comes."""

    def __init__(self, artifacts, database):
        super().__init__(artifacts)
        self._database, self.rounds = database, 0
        self.key = keep(database, artifacts, "round 0")

    def unverified_path(self, key):
        if key == self.key and self.rounds < 2:
            self.rounds += 1
            delete(self._database, key)
            assert remove_released(self._database, self, older_than=timedelta()) == 1
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
    artifacts = ShortLived(place.artifacts, database)
    back_up(database, artifacts, tmp_path / "backup")
    assert artifacts.rounds == 2
    assert names_in(restored(tmp_path, empty_place(dialect, migrated=True))) == ["round 2", "stays"]


def test_a_backup_leaves_out_what_was_deleted(place, database, empty_place, dialect, tmp_path):
    """Though the files are there still."""
    delete(database, keep(database, place.artifacts, "gone"))
    back_up(database, place.artifacts, tmp_path / "backup")
    assert names_in(restored(tmp_path, empty_place(dialect, migrated=True))) == []
