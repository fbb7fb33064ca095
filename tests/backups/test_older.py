"""A backup of an older schema is restored and brought up to date."""

from databases import BOTH_DIALECTS
from later_revision import later_revision
from schema_rows import go_to, held, revision

from service.backups.restore import restore
from service.storage.schema import upgrade


@BOTH_DIALECTS
def test_an_older_backup_is_brought_up_to_date(place, backup, dialect, empty_place, tmp_path):
    into, before = empty_place(dialect), revision(place.url)
    with later_revision(tmp_path / "migrations") as later:
        upgrade(into.url)
        restore(into.url, into.artifacts, backup)
        assert revision(into.url) == later
        upgrade(place.url)
        expected, restored = held(place.url), held(into.url)
        go_to(place.url, before)  # other tests get this database next
    for rows in (expected, restored):
        for table in ("calibration", "evaluation"):  # jobs that ran are handed back
            rows[table] = [row for row in rows[table] if row["finished_at"]]
    assert restored == expected
