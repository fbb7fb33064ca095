"""The database, for commands that work on it and not on a service."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import OperationalError

from service.cli.failure import CommandFailed
from service.cli.given_settings import given_settings, prepare
from service.errors import ServiceError
from service.log_lines import configure_logging
from service.settings import Settings
from service.storage.database import Database, open_database


@contextmanager
def opened_database() -> Iterator[tuple[Database, Settings]]:
    """Yield the database; a failure ends the command with one sentence."""
    settings = given_settings()
    configure_logging(settings.log_format, level=logging.ERROR)
    prepare(settings)
    database = open_database(settings.resolved_database_url())
    try:
        yield database, settings
    except ServiceError as error:
        raise CommandFailed(error.message) from error
    except OperationalError as error:
        raise CommandFailed("the database does not answer; see HOWSURE_DATABASE_URL") from error
    finally:
        database.dispose()
