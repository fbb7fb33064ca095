"""Each connection to a SQLite file that the service uses is durable, checks keys and waits."""

import pytest
from sqlalchemy import Engine, event, text

from service.storage.database import SQLITE_BUSY_SECONDS, snapshot
from service.storage.schema import upgrade
from service.storage.tenants import ALL_TENANTS

FULL, ON, OFF = 2, 1, 0


@pytest.fixture
def dialect():
    return "sqlite"


def settings_of(connection):
    names = ("journal_mode", "synchronous", "foreign_keys", "query_only", "busy_timeout")
    return {name: connection.scalar(text(f"PRAGMA {name}")) for name in names}


def test_whoever_writes_reads_or_makes_a_backup(database):
    expected = {"journal_mode": "wal", "synchronous": FULL, "foreign_keys": ON}
    expected["busy_timeout"] = SQLITE_BUSY_SECONDS * 1000
    for _ in range(2):  # on a new connection, and on one that the other kind has used
        for opened, query_only in (
            (database.session(ALL_TENANTS), OFF),
            (database.reading(ALL_TENANTS), ON),
            (snapshot(database, holding_files=False), ON),
            (snapshot(database, holding_files=True), OFF),
        ):
            with opened as connection:
                assert settings_of(connection) == expected | {"query_only": query_only}


def test_a_migration_waits_longer_and_checks_keys_at_its_end(tmp_path):
    file, seen = str(tmp_path / "new.sqlite3"), []

    def look(connection):
        if connection.engine.url.database != file:
            return  # a service that other tests of this process share
        raw = connection.connection.cursor()
        names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        seen.append([raw.execute(f"PRAGMA {name}").fetchone()[0] for name in names])

    event.listen(Engine, "begin", look)
    try:
        upgrade(f"sqlite:///{file}")
    finally:
        event.remove(Engine, "begin", look)
    assert seen == [["wal", FULL, OFF, 3_600_000]]
