"""The database schema: upgrades, and checks of its revision."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

import migrations
from service.errors import Conflict
from service.storage.database import READ_ONLY, Database, open_database


def migration_config(url: str) -> Config:
    """Return Alembic's configuration for the migrations of this installation."""
    if migrations.__file__ is None:
        raise RuntimeError("the migrations are not installed")
    config = Config()
    config.set_main_option(
        "script_location", str(Path(migrations.__file__).parent).replace("%", "%%")
    )
    config.attributes["url"] = url
    return config


def upgrade(url: str) -> None:
    """Upgrade the schema; processes that do so at the same time wait for each other.

    It runs in one transaction: if the process dies, nothing has changed.

    Raises
    ------
    Conflict
        If a newer version of the program has upgraded it.
    """
    database = open_database(url)
    try:
        if is_current(database):
            return
    finally:
        database.dispose()
    try:
        command.upgrade(migration_config(url), "head")
    except CommandError as error:
        if "Can't locate revision" not in str(error):
            raise
        raise _too_new() from error


def begin_at(connection: Connection, revision: str) -> None:
    """Move a database without rows to an older or newer revision, within a transaction.

    Raises
    ------
    Conflict
        If a newer version of the program has upgraded it.
    """
    config, found = _within(connection), revision_of(connection)
    if found is not None and not is_known(found):
        raise _too_new()
    if found not in (None, revision):
        command.downgrade(config, "base")
    command.upgrade(config, revision)


def upgrade_within(connection: Connection) -> None:
    """Bring the database up to date, within a transaction."""
    command.upgrade(_within(connection), "head")


def head() -> str:
    """Return the revision that this code was written for."""
    found = _scripts().get_current_head()
    if found is None:
        raise RuntimeError("there are no migrations")
    return found


def is_known(revision: str) -> bool:
    """Tell whether a schema of this revision can be brought up to date."""
    return any(script.revision == revision for script in _scripts().walk_revisions())


def revision_of(connection: Connection) -> str | None:
    """Return the revision of a database's schema, None if it has none."""
    return MigrationContext.configure(connection).get_current_revision()


def is_current(database: Database) -> bool:
    """Tell whether the schema is the one this code was written for."""
    return _revision(database) == head()


def require_current(database: Database) -> None:
    """Refuse a database whose schema differs from this code's.

    Raises
    ------
    Conflict
        If it is older, or newer.
    """
    found = _revision(database)
    if found is not None and not is_known(found):
        raise _too_new()
    if found != head():
        raise Conflict("The database is not up to date: run `howsure db upgrade` first.")


def _revision(database: Database) -> str | None:
    # Read-only, so that it does not wait for the lock of a writer.
    reading = database.engine.execution_options(**{READ_ONLY: True})
    with reading.connect() as connection:
        return revision_of(connection)


def _too_new() -> Conflict:
    return Conflict(
        "A newer version of howsure has brought the database up to date: "
        "run that version, or a newer one."
    )


def _within(connection: Connection) -> Config:
    config = migration_config("")
    config.attributes["connection"] = connection
    return config


@cache  # reading them takes most of the time of a command
def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(migration_config(""))
