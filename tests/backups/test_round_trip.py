"""What is backed up is restored, whole, into either database."""

import shutil

import pytest
from databases import BOTH_DIALECTS, listening
from schema_rows import HEAD_ROWS, held, in_order
from sqlalchemy import Engine, delete, insert
from stored_rows import StoredPlace, assert_files_are_those_of_the_rows

import models
from service.backups.format import NAME, read_manifest, sealed
from service.backups.restore import restore
from service.errors import ArtifactDamaged, Conflict, InvalidInput
from service.storage.tenants import ALL_TENANTS


def handed_back(rows):
    """Return jobs as they are once nobody runs them any more."""
    queued = {"status": "queued", "lease_owner": None, "lease_until": None}
    running = [row for row in rows if row["status"] == "running"]
    others = [row for row in rows if row not in running]
    return in_order([*others, *(row | queued | {"attempt": row["attempt"] - 1} for row in running)])


@pytest.mark.process
@BOTH_DIALECTS
def test_rows_and_files_go_into_the_other_database(place, backup, other_dialect, empty_place):
    before = place.rows()
    into = empty_place(other_dialect)
    restore(into.url, into.artifacts, backup)
    rows = into.rows()
    for name in ("calibration", "evaluation"):
        assert rows.pop(name) == handed_back(before.pop(name)), name
    assert rows == before
    assert_files_are_those_of_the_rows(into)
    # The same through another database, without loss: only who ran a job is forgotten.
    again = into.back_up(backup.with_name("again"))
    first = read_manifest(backup)
    assert [table.part for table in again.tables] == [table.part for table in first.tables]
    assert again.files == first.files
    # Rows that are added get numbers that none has.
    row = HEAD_ROWS["bin_table"][0] | {"measure": "new", "served": False}
    del row["id"]
    with into.opened() as database, database.session(ALL_TENANTS) as session:
        added = session.execute(insert(models.BinTable.__table__).values(row))
        assert added.inserted_primary_key.id > max(one["id"] for one in HEAD_ROWS["bin_table"])


@BOTH_DIALECTS
def test_all_rows_are_of_one_moment(place, tmp_path):
    """Also if others write between two tables."""
    before, writes = place.rows(), []

    def write_before_decisions_are_read(_connection, _cursor, statement, *_):
        if "FROM operating_point" in statement and not writes:
            writes.append(statement)
            with place.opened() as database, database.session(ALL_TENANTS) as session:
                session.execute(delete(models.OperatingPoint))

    with listening(Engine, "before_cursor_execute", write_before_decisions_are_read):
        manifest = place.back_up(tmp_path / "backup")
    lines = {table.name: table.part.lines for table in manifest.tables}
    assert lines == {name: len(rows) for name, rows in before.items()}
    assert place.rows()["operating_point"] == []


def test_equal_files_are_kept_once_and_nothing_is_a_backup(stored_backup, empty_place, tmp_path):
    names = {path.name for path in (stored_backup / "files").iterdir()}
    assert len(names) < read_manifest(stored_backup).files.part.lines
    start, into = empty_place("sqlite", migrated=True), empty_place("sqlite")
    start.back_up(tmp_path / "backup")
    restore(into.url, into.artifacts, tmp_path / "backup")
    assert into.rows() == start.rows()


def test_a_restore_needs_an_empty_database_and_artifact_store(stored, stored_backup, empty_place):
    before, into = held(stored.url), empty_place("sqlite")
    with pytest.raises(Conflict, match="database is not empty"):
        restore(stored.url, into.artifacts, stored_backup)
    assert held(stored.url) == before
    assert into.artifacts.keys() == []

    key = "calibrations/00000000-0000-0000-0000-0000000000ff/model-0"
    into.artifacts.put_bytes(key, b"another")
    with pytest.raises(Conflict, match="1 files"):
        restore(into.url, into.artifacts, stored_backup)
    assert held(into.url) == {}
    assert into.artifacts.keys() == [key]


def test_backups_need_a_new_place_and_a_current_schema(
    stored, stored_backup, empty_place, tmp_path
):
    before = sorted(stored_backup.parent.iterdir())
    with pytest.raises(Conflict, match=str(stored_backup)):
        stored.back_up(stored_backup)
    assert sorted(stored_backup.parent.iterdir()) == before
    with pytest.raises(Conflict, match="up to date"):
        empty_place("sqlite").back_up(tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


def test_a_backup_of_a_newer_version_is_refused(stored_backup, empty_place, tmp_path):
    into, backup = empty_place("sqlite"), shutil.copytree(stored_backup, tmp_path / "backup")
    manifest = read_manifest(backup)
    for changes, word in (({"revision": "9999"}, "newer"), ({"format": 2}, "format 1, got 2")):
        changed = type(manifest)(**vars(manifest) | changes)
        (backup / NAME).write_bytes(sealed(changed))
        with pytest.raises(InvalidInput, match=word):
            restore(into.url, into.artifacts, backup)


def test_a_damaged_file_of_a_calibration_that_is_there_is_named(stored, tmp_path):
    folder = shutil.copytree(stored.folder, tmp_path / "artifacts")
    place = StoredPlace(stored.url, folder)
    (key,) = [key for key in place.artifacts.keys("calibrations") if "records-2" in key]
    for harm in (lambda: (folder / key).write_bytes(b"other"), (folder / key).unlink):
        harm()
        with pytest.raises(ArtifactDamaged, match="records 2 of digits@1"):
            place.back_up(tmp_path / "backup")
        assert list(tmp_path.glob("backup*")) == []
