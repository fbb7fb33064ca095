"""Engines: how each database is connected to and how its transactions begin."""

import json
import sqlite3
import time
from functools import partial
from pathlib import Path
from typing import Protocol

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url

SQLITE_BUSY_SECONDS = 15.0
POSTGRESQL_CONNECT_SECONDS = 5
READ_ONLY = "howsure_read_only"


class _RawConnection(Protocol):
    """What SQLAlchemy hands to a listener for new connections."""

    def execute(self, statement: str, /) -> object: ...


def make_engine(
    url: str, *, foreign_keys: bool = True, busy_seconds: float = SQLITE_BUSY_SECONDS
) -> Engine:
    """Return an engine for ``sqlite:///file`` or ``postgresql+psycopg://…``; nothing connects yet.

    ``foreign_keys=False`` is for migrations: SQLite alters a table by replacing it, and dropping
    the old one would take all its children along. A writer of SQLite waits for another one for
    ``busy_seconds``.
    """
    parsed = make_url(url)
    # Databases disagree about NaN in JSON: no row may hold any.
    to_json = partial(json.dumps, allow_nan=False)
    if parsed.get_backend_name() == "sqlite":
        options = _unless_in(parsed, timeout=busy_seconds)
        return _sqlite_engine(parsed, to_json, options, foreign_keys=foreign_keys)
    if parsed.get_backend_name() == "postgresql":
        return create_engine(
            parsed,
            pool_pre_ping=True,
            connect_args=_unless_in(parsed, connect_timeout=POSTGRESQL_CONNECT_SECONDS),
            json_serializer=to_json,
        )
    raise ValueError(f"a database must be SQLite or PostgreSQL, not {parsed.drivername!r}")


def sqlite_path(url: URL) -> Path | None:
    """Return the file of a SQLite database, or None on another database."""
    if url.get_backend_name() != "sqlite":
        return None
    if not url.database or url.database == ":memory:":
        raise ValueError("a SQLite database must be a file: sqlite:///path/to/file")
    return Path(url.database)


def _sqlite_engine(
    url: URL, to_json: partial[str], options: dict[str, object], *, foreign_keys: bool
) -> Engine:
    path = sqlite_path(url)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url,
        # The driver would begin transactions late and only for writes; _begin does it instead.
        connect_args={"isolation_level": None} | options,
        json_serializer=to_json,
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: _RawConnection, _record: object) -> None:
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA foreign_keys = {'ON' if foreign_keys else 'OFF'}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A transaction that reads first and writes later could not wait for another writer: it
        # would fail at once. So writers take the lock when they begin.
        read_only = connection.get_execution_options().get(READ_ONLY, False)
        connection.exec_driver_sql(f"PRAGMA query_only = {'ON' if read_only else 'OFF'}")
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    return engine


def _unless_in(url: URL, **options: object) -> dict[str, object]:
    """Return the options that the URL does not set itself."""
    return {name: value for name, value in options.items() if name not in url.query}


def _use_write_ahead_log(connection: _RawConnection) -> None:
    """Switch to the write-ahead log: readers and the one writer then do not wait for each other.

    Switching ignores the busy timeout: of two processes that open a new file at once one may be
    turned away (2 of 360 openings, measured), and finds the file switched a moment later.
    """
    deadline = time.monotonic() + SQLITE_BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
