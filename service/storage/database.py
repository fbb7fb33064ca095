"""The database: sessions that commit once, at the end."""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import structlog
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import DataError, DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import ConnectionPoolEntry

from service.errors import (
    ArtifactDamaged,
    Conflict,
    InvalidInput,
    OutcomeUnknown,
    Overloaded,
    ServiceError,
    StorageFull,
)
from service.storage.tenants import TenantScope, set_tenant

log = structlog.get_logger(__name__)

# A quota, or a limit on the size of files, is no full disk to SQLite but a write that failed.
_SQLITE_NO_ROOM = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_IOERR_SHMMAP,
    }
)
_POSTGRESQL_DISK_FULL = "53100"
_POSTGRESQL_DAMAGED = ("XX001", "XX002")
_POSTGRESQL_AWAY = ("08", "53", "57P")


@contextmanager
def database_failures() -> Iterator[None]:
    """Translate a database that is full, busy or away; anything else is a bug and stays one."""
    try:
        yield
    except PoolTimeoutError as error:
        raise Overloaded("All connections to the database are in use.") from error
    except UnicodeDecodeError as error:  # a stored text, or SQLite's own message of one
        raise _damaged(error) from error
    except DBAPIError as error:
        is_sqlite = isinstance(error.orig, sqlite3.Error)
        failure = _sqlite_meaning(error.orig) if is_sqlite else _postgresql_meaning(error)
        if failure is None:
            raise
        raise failure from error


def _sqlite_meaning(error: BaseException | None) -> ServiceError | None:
    extended = getattr(error, "sqlite_errorcode", 0)
    if extended in _SQLITE_NO_ROOM:
        return StorageFull("No space is left for the database.")
    # Extended codes keep the primary one in their low byte.
    code = extended & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Overloaded("The database is busy.")
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        return Overloaded("The database cannot be read or written at the moment.")
    # A text, or a name in the schema, with a changed bit has no code of its own.
    is_damaged = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    is_damaged |= any(
        words in str(error) for words in ("decode to UTF-8", "no such table", "no such column")
    )
    return _damaged(error) if is_damaged else None


def _damaged(error: BaseException | None) -> ServiceError:
    log.error("database_damaged", error=str(error))
    return ArtifactDamaged("The database is damaged: restore it from a backup.")


def _postgresql_meaning(error: DBAPIError) -> ServiceError | None:
    if isinstance(error, DataError) and "NUL" in str(error.orig):
        return InvalidInput.at("request", "expected text without the character NUL")
    code: str | None = getattr(error.orig, "sqlstate", None)
    if code in _POSTGRESQL_DAMAGED:
        return _damaged(error.orig)
    if code == _POSTGRESQL_DISK_FULL:
        return StorageFull("No space is left for the database.")
    # An error without a code is the driver's own: it has no connection, or lost it.
    lost = code is None and isinstance(error, OperationalError)
    if lost or (code is not None and code.startswith(_POSTGRESQL_AWAY)):
        return Overloaded("The database does not answer.")
    return None


SQLITE_BUSY_SECONDS = 15.0
POSTGRESQL_CONNECT_SECONDS = 5
READ_ONLY = "howsure_read_only"


class _RawConnection(Protocol):
    """A new connection, as SQLAlchemy passes it to a listener."""

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
            # Without an encoding the driver returns bytes for the text of an SQL_ASCII database.
            connect_args=_unless_in(
                parsed, connect_timeout=POSTGRESQL_CONNECT_SECONDS, client_encoding="UTF8"
            ),
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


class Database:
    """An engine and the two kinds of transaction on it. Rows may be read after the session."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        # Grows with each transaction of this process that may have written news; see `session`.
        self.generation = 0
        options: dict[str, object] = {READ_ONLY: True, "postgresql_readonly": True}
        if engine.dialect.name == "postgresql":
            # One state of the database for all statements, as SQLite gives by itself: a row that
            # is deleted between two of them would otherwise be read in part.
            options["isolation_level"] = "REPEATABLE READ"
        reading = engine.execution_options(**options)
        self._writing = sessionmaker(engine, expire_on_commit=False)
        self._reading = sessionmaker(reading, expire_on_commit=False)

    @contextmanager
    def session(self, tenant: TenantScope, *, invalidates_cache: bool = True) -> Iterator[Session]:
        """Open a transaction that may write: committed at the end, undone by an exception.

        It sees and writes the rows of one tenant; `ALL_TENANTS` marks one that crosses tenants.
        PostgreSQL enforces this. SQLite runs one such transaction at a time.

        Pass ``invalidates_cache=False`` if no row changes that predictions depend on, for example
        if only rows of unfinished jobs change.

        Raises
        ------
        StorageFull, Overloaded
            If the database is full, busy or away; nothing is written then.
        OutcomeUnknown
            If it went away at the end: all of it is written, or nothing.
        """
        is_written = False
        try:
            with database_failures(), self._writing.begin() as session:
                set_tenant(session.connection(), tenant)
                yield session
                session.flush()
                is_written = True
        except StorageFull:
            raise
        except Overloaded as error:
            if not is_written:
                raise
            raise OutcomeUnknown(
                "The database connection was lost during commit. Check whether the change was "
                "saved before you retry."
            ) from error
        finally:
            # Even if the commit failed: the database may have finished it.
            if is_written and invalidates_cache:
                self.generation += 1

    @contextmanager
    def reading(self, tenant: TenantScope) -> Iterator[Session]:
        """Open a transaction that only reads, one state of all rows, and waits for no writer.

        It sees the rows of one tenant; `ALL_TENANTS` marks one that crosses tenants.
        """
        with database_failures(), self._reading.begin() as session:
            set_tenant(session.connection(), tenant)
            yield session

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self.engine.dialect.name

    def dispose(self) -> None:
        """Close every connection; those in use when they are returned."""
        # SQLAlchemy would keep these open, in the pool that it leaves here.
        event.listen(self.engine.pool, "checkin", _close)
        self.engine.dispose()


def _close(_connection: object, record: ConnectionPoolEntry) -> None:
    record.invalidate()


def open_database(url: str) -> Database:
    """Return the database at ``sqlite:///file`` or ``postgresql+psycopg://…``.

    It is connected to when first used.

    Raises
    ------
    ValueError
        If the URL is of another database, or of a SQLite database without a file.
    """
    return Database(make_engine(url))


OLDEST_POSTGRESQL = 14
_SERVER_FACTS = text(
    "SELECT current_setting('server_encoding'), current_setting('server_version'),"
    " current_setting('server_version_num')::int / 10000,"
    " current_setting('transaction_read_only')::bool"
)


def require_usable(database: Database) -> None:
    """Refuse a PostgreSQL server that cannot hold the schema.

    Raises
    ------
    Conflict
        If it is too old or read-only, or its encoding is not UTF8.
    SQLAlchemyError
        If there is no connection.
    """
    if database.dialect == "sqlite":
        return
    with database.engine.connect() as connection:
        encoding, version, major, is_read_only = connection.execute(_SERVER_FACTS).one()
    if major < OLDEST_POSTGRESQL:
        raise Conflict(f"PostgreSQL {version} is too old: use {OLDEST_POSTGRESQL} or later.")
    if encoding != "UTF8":
        raise Conflict(
            f"The encoding of the database is {encoding}: create one with"
            " `createdb --encoding=UTF8 --template=template0 NAME`."
        )
    if is_read_only:
        raise Conflict(
            "The database is read-only: use the primary server, with"
            " default_transaction_read_only off."
        )


_IS_EXEMPT = text("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")


def bypasses_row_security(database: Database) -> bool:
    """Tell whether PostgreSQL exempts the service's role from row-level security."""
    if database.dialect == "sqlite":
        return False
    with database.engine.connect() as connection:
        return bool(connection.scalar(_IS_EXEMPT))
