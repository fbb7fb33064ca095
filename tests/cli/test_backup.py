"""`howsure db` where there is nothing to back up, or a newer database."""

import sqlite3
from contextlib import closing

from howsure_command import howsure


def test_a_backup_of_no_database_makes_none(tmp_path):
    failed = howsure("db", "backup", "kept", folder=tmp_path)
    assert failed.returncode == 1
    assert "data/howsure.sqlite3" in failed.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_a_newer_version_is_told(tmp_path):
    assert howsure("db", "upgrade", folder=tmp_path).returncode == 0
    with closing(sqlite3.connect(tmp_path / "data" / "howsure.sqlite3")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    for words in (("upgrade",), ("backup", "kept")):
        failed = howsure("db", *words, folder=tmp_path)
        assert failed.returncode == 1
        assert "newer version of howsure" in " ".join(failed.stderr.split())
