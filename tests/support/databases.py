"""Databases of the tests: a file per test on SQLite, a schema at a time on PostgreSQL."""

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres_server import NoServerError, libpq_url, postgres_server
from psycopg import sql
from sqlalchemy import Connection, Engine, NullPool, create_engine, event, make_url, text

import models
from service.storage.schema import upgrade

DIALECTS = ("sqlite", "postgresql")
# For tests of folders where one dialect is enough for most.
BOTH_DIALECTS = pytest.mark.parametrize("dialect", DIALECTS)
Statement = tuple[str, Any]


@cache
def migrated_sqlite() -> bytes:
    """Return a SQLite file that is up to date: to copy it is quicker than to migrate another."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "migrated.sqlite3")
        upgrade(f"sqlite:///{path}")
        return path.read_bytes()


def put_sqlite_file(url: str) -> None:
    """Write a file that is up to date where a service would make one; others stay as they are."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return
    path = Path(parsed.database)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(migrated_sqlite())


@contextmanager
def scratch_database() -> Iterator[str]:
    """Yield the URL of an empty PostgreSQL database, dropped afterwards.

    Where there is no server the test is skipped with the reason; in CI it fails.
    """
    try:
        with postgres_server() as server, _database(server) as url:
            yield url
    except NoServerError as error:
        if os.environ.get("CI"):
            pytest.fail(f"PostgreSQL is required in CI: {error}")
        pytest.skip(f"PostgreSQL: {error}")


@contextmanager
def scratch_schema(database_url: str) -> Iterator[str]:
    """Yield the URL of an empty schema of the database, dropped afterwards."""
    name = f"test_{uuid.uuid4().hex}"
    _execute(database_url, sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
    try:
        # Commits that wait for the disk would double the time of the suite.
        options = f"-csearch_path={name} -csynchronous_commit=off"
        url = make_url(database_url).update_query_dict({"options": options})
        yield url.render_as_string(hide_password=False)
    finally:
        _execute(database_url, sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


def statements_of_upgrade(database_url: str) -> list[Statement]:
    """Bring a database up to date, and return what was said to it: it makes the next one alike."""
    said: list[Statement] = []
    url = make_url(database_url)

    def listen(
        connection: Connection, _cursor: Any, said_now: str, parameters: Any, *_: Any
    ) -> None:
        # A service of another test may run beside it, on a database of its own.
        if connection.engine.url == url and not said_now.startswith("SELECT"):
            said.append((said_now, parameters))

    event.listen(Engine, "before_cursor_execute", listen)
    try:
        upgrade(database_url)
    finally:
        event.remove(Engine, "before_cursor_execute", listen)
    return said


class MigratedSchemas:
    """Lends schemas of a database that are up to date.

    One that comes back as it was, once what a test wrote is deleted, is lent again.
    """

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url
        self._made = ExitStack()
        self._free: list[str] = []
        with scratch_schema(database_url) as url:
            self._statements = statements_of_upgrade(url)

    @contextmanager
    def lend(self) -> Iterator[str]:
        """Yield the URL of a schema that holds what the migrations put there, and nothing else."""
        url = self._free.pop() if self._free else self._make()
        form = _form(url)
        yield url
        if _form(url) == form and self._empty(url):
            self._free.append(url)

    def close(self) -> None:
        """Drop them all."""
        self._made.close()

    def _make(self) -> str:
        url = self._made.enter_context(scratch_schema(self._database_url))
        with _begin(url) as connection:
            for statement, parameters in self._statements:
                connection.exec_driver_sql(statement, parameters)
        return url

    def _empty(self, url: str) -> bool:
        """Undo what a test wrote; not while somebody who could write is connected still."""
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        with _begin(url) as connection:
            if connection.scalar(text(f"{others} AND pid <> pg_backend_pid()")):
                return False
            # As the owner of the database prunes the audit table, and nobody else can.
            connection.execute(text("ALTER TABLE audit_entry DISABLE TRIGGER USER"))
            for table in reversed(models.Base.metadata.sorted_tables):
                connection.execute(table.delete())
            connection.execute(text("ALTER TABLE audit_entry ENABLE TRIGGER USER"))
            for statement, parameters in self._statements:
                if statement.startswith("INSERT INTO tenant "):
                    connection.exec_driver_sql(statement, parameters)
        return True


def _form(url: str) -> list[tuple[str, ...]]:
    """Return what a test may not leave changed: the columns and the constraints of all tables."""
    columns = (
        "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns "
        "WHERE table_schema = current_schema()"
    )
    constraints = (
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), '' "
        "FROM pg_constraint WHERE connamespace = current_schema()::regnamespace"
    )
    with _begin(url) as connection:
        return sorted(
            tuple(row) for row in connection.execute(text(f"{columns} UNION {constraints}"))
        )


@contextmanager
def _begin(url: str) -> Iterator[Connection]:
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        yield connection


@contextmanager
def _database(server_url: str) -> Iterator[str]:
    name = f"howsure_test_{uuid.uuid4().hex}"
    _execute(server_url, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
    finally:
        drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
        _execute(server_url, drop)


def _execute(url: str, statement: sql.Composable) -> None:
    with psycopg.connect(libpq_url(url), autocommit=True, connect_timeout=5) as connection:
        connection.execute(statement)
