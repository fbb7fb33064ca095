"""What a database's failures mean to a caller."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from service.errors import Overloaded, ServiceError, StorageFull

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
_POSTGRESQL_AWAY = ("08", "53", "57P")


@contextmanager
def database_failures() -> Iterator[None]:
    """Translate a database that is full, busy or away; anything else is a bug and stays one."""
    try:
        yield
    except PoolTimeoutError as error:
        raise Overloaded("All connections to the database are in use.") from error
    except DBAPIError as error:
        failure = _meaning(error)
        if failure is None:
            raise
        raise failure from error


def _meaning(error: DBAPIError) -> ServiceError | None:
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        return _sqlite_meaning(cause)
    return _postgresql_meaning(error)


def _sqlite_meaning(error: sqlite3.Error) -> ServiceError | None:
    extended = getattr(error, "sqlite_errorcode", 0)
    if extended in _SQLITE_NO_ROOM:
        return StorageFull("No space is left for the database.")
    # Extended codes keep the primary one in their low byte.
    code = extended & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Overloaded("The database is busy.")
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        return Overloaded("The database cannot be read or written at the moment.")
    return None


def _postgresql_meaning(error: DBAPIError) -> ServiceError | None:
    code: str | None = getattr(error.orig, "sqlstate", None)
    if code == _POSTGRESQL_DISK_FULL:
        return StorageFull("No space is left for the database.")
    # An error without a code is the driver's own: it has no connection, or lost it.
    lost = code is None and isinstance(error, OperationalError)
    if lost or (code is not None and code.startswith(_POSTGRESQL_AWAY)):
        return Overloaded("The database does not answer.")
    return None
