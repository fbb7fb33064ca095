"""Databases of the tests: a file per test on SQLite, a schema per test on PostgreSQL."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from postgres_server import NoServerError, libpq_url, postgres_server
from psycopg import sql
from sqlalchemy import make_url

DIALECTS = ("sqlite", "postgresql")


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
