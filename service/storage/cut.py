"""A cut: one state of all rows, for a backup."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, text

from service.storage.database import Database
from service.storage.engine import READ_ONLY
from service.storage.failures import database_failures


@contextmanager
def cut(database: Database, *, holding_files: bool = False) -> Iterator[Connection]:
    """Open a transaction that sees one state of all rows, whatever is written meanwhile.

    It waits for nobody and nobody for it, unless ``holding_files``: then whoever wants to write a
    row of a file, or take one away, waits until it ends. A file is deleted after its row, so that
    all files that the cut names are there as long.
    """
    is_sqlite = database.dialect == "sqlite"
    # SQLite has one lock, which it gives to a transaction that may write.
    options: dict[str, object] = {READ_ONLY: not (is_sqlite and holding_files)}
    if not is_sqlite:
        options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    engine = database.engine.execution_options(**options)
    with database_failures(), engine.connect() as connection, connection.begin():
        if holding_files and not is_sqlite:
            # Before anything is read: the state is that of the first query.
            connection.execute(text("LOCK TABLE artifact IN SHARE MODE"))
        yield connection
