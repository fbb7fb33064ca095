"""The schema: bringing a database up to date, and telling whether it is."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

import migrations
from service.storage.database import Database


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
    """Bring the database up to date; processes that do so at once wait for one another."""
    command.upgrade(migration_config(url), "head")


def is_current(database: Database) -> bool:
    """Tell whether the schema is the one this code was written for."""
    url = database.engine.url.render_as_string(hide_password=False)
    scripts = ScriptDirectory.from_config(migration_config(url))
    with database.engine.connect() as connection:
        found = MigrationContext.configure(connection).get_current_heads()
    return set(found) == set(scripts.get_heads())
