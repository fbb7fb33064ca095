"""The database: sessions that commit once, at the end."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

from service.errors import OutcomeUnknown, Overloaded, StorageFull
from service.storage.engine import READ_ONLY, make_engine
from service.storage.failures import database_failures


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
    def session(self, *, is_news: bool = True) -> Iterator[Session]:
        """Open a transaction that may write: committed at the end, undone by an exception.

        SQLite has one such transaction at a time. What is read after news may differ from what was
        read before; not news is a job that is queued, and what it does to its own row while it is
        unfinished, for nothing that is served comes from there.

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
                yield session
                session.flush()
                is_written = True
        except StorageFull:
            raise
        except Overloaded as error:
            if not is_written:
                raise
            raise OutcomeUnknown(
                "The database went away before it said whether it has kept this; look before you "
                "try again."
            ) from error
        finally:
            # Also where the end of it failed: it may have been committed nonetheless.
            if is_written and is_news:
                self.generation += 1

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Open a transaction that only reads, one state of all rows, and waits for no writer."""
        with database_failures(), self._reading.begin() as session:
            yield session

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self.engine.dialect.name

    def dispose(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def open_database(url: str) -> Database:
    """Return the database at ``sqlite:///file`` or ``postgresql+psycopg://…``.

    It is connected to when first used.

    Raises
    ------
    ValueError
        If the URL is of another database, or of a SQLite database without a file.
    """
    return Database(make_engine(url))
