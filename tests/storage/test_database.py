import uuid
from contextlib import suppress

import pytest
from databases import listening, put_sqlite_file
from own_process import file_size_limit
from runner_children import wait_until
from sqlalchemy import Engine, func, insert, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError
from stored_rows import add_tenant, at_once

import models
from service.errors import InvalidInput, Overloaded, StorageFull
from service.storage.database import (
    SQLITE_BUSY_SECONDS,
    make_engine,
    open_database,
)
from service.storage.schema import upgrade
from service.storage.tenants import ALL_TENANTS

FULL, ON, OFF = 2, 1, 0


@pytest.fixture
def sqlite_database(tmp_path):
    url = f"sqlite:///{tmp_path / 'lone.sqlite3'}?timeout=0.1"
    put_sqlite_file(url)
    opened = open_database(url)
    yield opened
    opened.dispose()


def second_tenant():
    return models.Tenant(id=uuid.uuid4(), name=uuid.uuid4().hex)


def tenants(database):
    with database.reading(ALL_TENANTS) as session:
        return session.scalar(select(func.count()).select_from(models.Tenant))


def test_a_session_commits_at_its_end_and_an_exception_undoes_it(database):
    """Only the first is news."""

    before = database.generation
    with suppress(ZeroDivisionError), database.session(ALL_TENANTS) as session:
        session.add(second_tenant())
        session.flush()
        raise ZeroDivisionError
    with pytest.raises(IntegrityError):  # a bug, which is not disguised
        add_tenant(database, models.DEFAULT_TENANT)
    assert (tenants(database), database.generation) == (1, before)
    add_tenant(database, "second")
    assert tenants(database) == 2
    assert database.generation > before


def test_what_may_have_been_written_is_news(sqlite_database):
    before = sqlite_database.generation

    nobodys = models.CalibrationName(tenant_id=uuid.uuid4(), name="nobody's", last_version=1)
    with pytest.raises(IntegrityError), sqlite_database.session(ALL_TENANTS) as session:  # noqa: PT012
        # Checked at the end of the transaction, which therefore fails.
        session.execute(text("PRAGMA defer_foreign_keys = ON"))
        session.add(nobodys)
    assert sqlite_database.generation > before


def test_a_reading_session_cannot_write(database):
    with pytest.raises(DBAPIError, match=r"read-?only"), database.reading(ALL_TENANTS) as session:
        session.execute(insert(models.Tenant).values(id=uuid.uuid4(), name="second"))
    add_tenant(database, "second")
    assert tenants(database) == 2


def test_a_reader_waits_for_no_writer_and_sees_one_state_to_its_end(database):
    count = select(func.count()).select_from(models.Tenant)
    with database.reading(ALL_TENANTS) as session:
        with database.session(ALL_TENANTS) as writer:
            writer.add(second_tenant())
            writer.flush()
            assert session.scalar(count) == 1
        assert session.scalar(count) == 1
    assert tenants(database) == 2


def test_a_sqlite_writer_that_read_first_does_not_fail_for_another_writer(sqlite_database):
    """With a deferred transaction the second to write would be refused without waiting."""
    patient = open_database(str(sqlite_database.engine.url).replace("timeout=0.1", "timeout=20"))

    def read_then_write():
        for _ in range(5):
            with patient.session(ALL_TENANTS) as session:
                session.scalar(select(func.count()).select_from(models.Tenant))
                session.add(second_tenant())

    at_once([read_then_write] * 6)
    assert tenants(patient) == 31
    patient.dispose()


def test_a_busy_sqlite_file_is_an_overload_that_passes(sqlite_database):
    other = open_database(str(sqlite_database.engine.url))
    with sqlite_database.session(ALL_TENANTS) as session:
        session.scalar(select(1))
        with pytest.raises(Overloaded, match="busy"):
            add_tenant(other, "second")
    add_tenant(other, "second")
    assert tenants(other) == 2
    other.dispose()


def test_a_full_disk_is_told_and_leaves_nothing(sqlite_database):
    assert tenants(sqlite_database) == 1
    with file_size_limit(0), pytest.raises(StorageFull):
        add_tenant(sqlite_database, "second")
    with pytest.raises(StorageFull), sqlite_database.session(ALL_TENANTS) as session:  # noqa: PT012
        # SQLite reports a file at its largest allowed size as it reports a full disk.
        session.execute(text("PRAGMA max_page_count = 1"))
        session.add_all([second_tenant() for _ in range(5_000)])
    sqlite_database.dispose()
    assert tenants(sqlite_database) == 1
    add_tenant(sqlite_database, "second")
    assert tenants(sqlite_database) == 2


def test_a_postgresql_that_does_not_answer_is_an_overload():
    database = open_database("postgresql+psycopg://nobody@127.0.0.1:1/none")
    with pytest.raises(Overloaded):
        tenants(database)
    database.dispose()


def test_a_connection_that_the_server_closed_is_replaced(postgresql_database_url):
    database, other = open_database(postgresql_database_url), open_database(postgresql_database_url)
    with database.session(ALL_TENANTS) as session:
        mine = session.scalar(text("SELECT pg_backend_pid()"))
    with other.session(ALL_TENANTS) as session:
        assert session.scalar(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": mine})
    with database.session(ALL_TENANTS) as session:
        assert session.scalar(text("SELECT pg_backend_pid()")) != mine
    database.dispose()
    other.dispose()


def test_a_connection_that_is_in_use_when_all_are_closed_is_closed_when_returned(
    postgresql_database_url,
):
    database, other = open_database(postgresql_database_url), open_database(postgresql_database_url)
    connected = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid")
    with database.reading(ALL_TENANTS) as session:
        pid = {"pid": session.scalar(text("SELECT pg_backend_pid()"))}
        database.dispose()
        assert session.scalar(connected, pid) == 1

    def is_gone():
        with other.reading(ALL_TENANTS) as session:
            return session.scalar(connected, pid) == 0

    assert wait_until(is_gone)
    other.dispose()


def test_other_databases_are_refused_and_the_folder_of_a_sqlite_file_is_made(tmp_path):
    for url in ("mysql://host/name", "sqlite://", "sqlite:///:memory:"):
        with pytest.raises(ValueError, match="must be"):
            make_engine(url)
    with make_engine(f"sqlite:///{tmp_path / 'new' / 'folder' / 'file.sqlite3'}").connect() as made:
        assert made.scalar(select(1)) == 1


def settings_of(connection):
    names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "query_only")
    return [connection.scalar(text(f"PRAGMA {name}")) for name in names]


def test_each_connection_to_a_sqlite_file_is_durable_checks_keys_and_waits(sqlite_database):
    """Of who reads or writes; on new connections, and on those of the other."""
    url = str(sqlite_database.engine.url).partition("?")[0]
    database = open_database(url)
    for _ in range(2):
        for opened, query_only in (
            (database.session(ALL_TENANTS), OFF),
            (database.reading(ALL_TENANTS), ON),
        ):
            with opened as connection:
                expected = ["wal", FULL, ON, SQLITE_BUSY_SECONDS * 1000, query_only]
                assert settings_of(connection) == expected
    database.dispose()


def test_a_migration_of_sqlite_waits_longer_and_checks_keys_at_its_end(tmp_path):
    file, settings = str(tmp_path / "new.sqlite3"), []

    def look(connection):
        if connection.engine.url.database == file:  # not of a service of this process
            settings.append(settings_of(connection))

    with listening(Engine, "begin", look):
        upgrade(f"sqlite:///{file}")
    assert settings[-1] == ["wal", FULL, OFF, 3_600_000, OFF]


def test_a_nul_that_postgresql_does_not_take_is_a_fault_of_the_request(postgresql_database_url):
    database = open_database(postgresql_database_url)
    with pytest.raises(InvalidInput, match="NUL"), database.reading(ALL_TENANTS) as session:
        session.scalars(select(models.Tenant).where(models.Tenant.name == "a\0b")).all()
    database.dispose()
