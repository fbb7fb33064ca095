"""What is backed up is restored, whole, into either database."""

import pytest
from databases import BOTH_DIALECTS
from schema_rows import HEAD_ROWS, held, in_order
from sqlalchemy import insert
from stored_rows import assert_files_are_those_of_the_rows

import models
from service.backups.format import NAME, read_manifest, sealed
from service.backups.restore import restore
from service.errors import Conflict, InvalidInput
from service.storage.schema import upgrade
from service.storage.tenants import ALL_TENANTS


def handed_back(rows):
    """Return jobs as they are once nobody runs them any more."""
    queued = {"status": "queued", "lease_owner": None, "lease_until": None}
    return in_order(
        [
            row | queued | {"attempt": row["attempt"] - 1} if row["status"] == "running" else row
            for row in rows
        ]
    )


@BOTH_DIALECTS
@pytest.mark.parametrize("across", [False, True], ids=["the same database", "the other one"])
def test_rows_and_files_are_restored(place, backup, dialect, other_dialect, empty_place, across):
    before = place.rows()
    into = empty_place(other_dialect if across else dialect)
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


@BOTH_DIALECTS
def test_restored_rows_get_new_numbers(backup, dialect, empty_place):
    into = empty_place(dialect)
    restore(into.url, into.artifacts, backup)
    row = HEAD_ROWS["bin_table"][0] | {"measure": "new", "served": False}
    del row["id"]
    with into.opened() as database, database.session(ALL_TENANTS) as session:
        made = session.execute(insert(models.BinTable.__table__).values(row))
        assert made.inserted_primary_key.id > max(one["id"] for one in HEAD_ROWS["bin_table"])


def test_files_with_the_same_content_are_kept_once(backup):
    manifest = read_manifest(backup)
    names = {path.name for path in (backup / "files").iterdir()}
    assert len(names) < manifest.files.part.lines
    assert {path.name for path in backup.iterdir()} == {NAME, "files.jsonl", "files", "rows"}


def test_a_backup_of_nothing_is_restored(dialect, empty_place, tmp_path):
    start, into = empty_place(dialect), empty_place(dialect)
    upgrade(start.url)
    start.back_up(tmp_path / "backup")
    restore(into.url, into.artifacts, tmp_path / "backup")
    assert into.rows() == start.rows()


def test_a_restore_needs_an_empty_database(place, backup, dialect, empty_place):
    before = held(place.url)
    elsewhere = empty_place(dialect)
    with pytest.raises(Conflict, match="database is not empty"):
        restore(place.url, elsewhere.artifacts, backup)
    assert held(place.url) == before
    assert elsewhere.artifacts.keys() == []


def test_a_restore_needs_an_empty_place_for_artifacts(place, backup, dialect, empty_place):
    into = empty_place(dialect)
    key = "calibrations/00000000-0000-0000-0000-0000000000ff/model-0"
    into.artifacts.put_bytes(key, b"another")
    with pytest.raises(Conflict, match="1 files there are not the backup's"):
        restore(into.url, into.artifacts, backup)
    assert held(into.url) == {}
    assert into.artifacts.keys() == [key]


def test_a_backup_does_not_overwrite(place, backup):
    before = sorted(path.name for path in backup.parent.iterdir())
    with pytest.raises(Conflict, match="exists"):
        place.back_up(backup)
    assert sorted(path.name for path in backup.parent.iterdir()) == before


def test_a_backup_needs_an_up_to_date_database(dialect, empty_place, tmp_path):
    start = empty_place(dialect)
    with pytest.raises(Conflict, match="not up to date"):
        start.back_up(tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


def test_a_backup_of_a_newer_version_is_refused(backup, dialect, empty_place):
    into = empty_place(dialect)
    manifest = read_manifest(backup)
    for changes, says in (({"revision": "9999"}, "newer"), ({"format": 2}, "format 1, got 2")):
        changed = type(manifest)(**vars(manifest) | changes)
        (backup / NAME).write_bytes(sealed(changed))
        with pytest.raises(InvalidInput, match=says):
            restore(into.url, into.artifacts, backup)


def test_a_damaged_file_of_a_calibration_that_is_there_is_named(place, tmp_path):
    (key,) = [key for key in place.artifacts.keys("calibrations") if "records-2" in key]
    path = place.folder / key
    for harm in (lambda: path.write_bytes(path.read_bytes() + b" "), path.unlink):
        harm()
        with pytest.raises(Exception, match=r"records 2 of digits@1 is missing or damaged"):
            place.back_up(tmp_path / "backup")
        assert [found.name for found in tmp_path.glob("backup*")] == []
