"""Settings, database and artifact store for commands that work without a service."""

import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError
from pydantic_settings import SettingsError

from service.calibrations.config_errors import violations_of
from service.cli.failure import CommandFailed, one_sentence, reason_of
from service.errors import Conflict, Overloaded
from service.settings import Settings, read_settings

if TYPE_CHECKING:
    from service.access.api_keys import Pepper
    from service.storage.artifact_store import ArtifactStore
    from service.storage.database import Database

# Free space without which a service does not start.
FREE_BYTES = 2**20
DATABASE_URLS = "sqlite:///file or postgresql+psycopg://user:password@host/name"


def load_settings(**options: str | int | Path | None) -> Settings:
    """Return the settings; options other than None override variables.

    Raises
    ------
    CommandFailed
        If a value is invalid; the sentence names the variable or the option.
    """
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return read_settings(**given)
    except ValidationError as error:
        lines = []
        for found in violations_of(error, Settings):
            name = found.location.removeprefix("config.")
            said = f"--{name.replace('_', '-')}" if name in given else f"HOWSURE_{name.upper()}"
            lines.append(f"{said}: {found.message}")
        raise CommandFailed("\n".join(lines)) from error
    except SettingsError as error:
        raise CommandFailed(str(error)) from error


@dataclass(frozen=True)
class Stores:
    """The database and the artifact store of the settings."""

    settings: Settings
    database: "Database"
    artifacts: "ArtifactStore"


@contextmanager
def opened_stores(settings: Settings, *, must_exist: bool = False) -> Iterator[Stores]:
    """Open the database and the artifact store; no request is sent to either.

    Raises
    ------
    CommandFailed
        If an address is invalid, or a SQLite database that must exist has no file.
    """
    from sqlalchemy import make_url
    from sqlalchemy.exc import SQLAlchemyError

    from service.storage.artifact_store import open_artifact_store
    from service.storage.database import open_database, sqlite_path

    # New files hold digests of keys, samples and models: only this user may read them.
    os.umask(0o077)
    url = settings.resolved_database_url()
    try:
        path = sqlite_path(make_url(url))
        if must_exist and path is not None and not path.exists():
            raise CommandFailed(f"there is no database {path}; see HOWSURE_DATA_DIR")
        database = open_database(url)
    except (ValueError, SQLAlchemyError, ImportError) as error:
        raise CommandFailed(f"HOWSURE_DATABASE_URL: expected {DATABASE_URLS}") from error
    try:
        artifacts = open_artifact_store(settings.resolved_artifacts_url())
    except ValueError as error:
        raise CommandFailed(f"HOWSURE_ARTIFACTS_URL: {error}") from error
    except OSError as error:
        raise CommandFailed(
            f"cannot create the artifact folder {error.filename} ({error.strerror}); "
            "see HOWSURE_DATA_DIR and HOWSURE_ARTIFACTS_URL"
        ) from error
    try:
        yield Stores(settings, database, artifacts)
    finally:
        database.dispose()


def refuse_service_address() -> None:
    """Refuse to make a database of this machine's own where ``HOWSURE_URL`` names a service."""
    if os.environ.get("HOWSURE_URL"):
        raise CommandFailed(
            "this command works on a database, and HOWSURE_URL names a service; leave it out, and "
            "set HOWSURE_DATABASE_URL and HOWSURE_DATA_DIR as for that service"
        )


@contextmanager
def local_stores(*, prepared: bool = True, must_exist: bool = False) -> Iterator[Stores]:
    """Open the stores for a command that works without a service.

    With ``prepared`` they are checked and upgraded first.
    """
    from service.startup import configure_logging

    refuse_service_address()
    settings = load_settings()
    # The final error message says everything, so warnings are not logged.
    configure_logging(settings.log_format, level=logging.ERROR)
    if prepared:
        prepare(settings)
    with opened_stores(settings, must_exist=must_exist) as stores:
        yield stores


def require_sandbox(settings: Settings) -> None:
    """Refuse to start if the kernel cannot sandbox processes, unless that is allowed.

    Raises
    ------
    CommandFailed
        With the missing features.
    """
    from service.runner.messages.sandbox_rules import find_sandbox

    missing = find_sandbox().missing
    if missing and not settings.allow_unsandboxed:
        raise CommandFailed(
            f"the kernel lacks {' and '.join(missing)}, so nothing can read uploads or run models "
            "safely; use Linux 5.13 or later, or set HOWSURE_ALLOW_UNSANDBOXED=true if you trust "
            "everyone who uploads"
        )


def prepare(settings: Settings) -> None:
    """Create the data folder, upgrade the database and check the artifact store.

    Raises
    ------
    CommandFailed
        If the folder, the database or the artifact store cannot be used.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from service.storage.database import require_usable
    from service.storage.schema import upgrade

    _make_data_folder(settings.data_dir)
    with one_sentence(), opened_stores(settings) as stores:
        try:
            require_usable(stores.database)
            upgrade(settings.resolved_database_url())
        except SQLAlchemyError as error:
            raise CommandFailed(
                f"the database cannot be used ({reason_of(error)}); see HOWSURE_DATABASE_URL"
            ) from error
        except Conflict as error:
            raise CommandFailed(f"HOWSURE_DATABASE_URL: {error.message}") from error
        try:
            stores.artifacts.check()
        except (OSError, Overloaded) as error:
            raise CommandFailed(f"HOWSURE_ARTIFACTS_URL: {error}") from error


def _make_data_folder(folder: Path) -> None:
    """Create the folder, and check that it takes a small file."""
    verb = "create"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        verb = "write to"
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(FREE_BYTES))
    except OSError as error:
        raise CommandFailed(
            f"cannot {verb} the data folder {folder} ({error.strerror}); see HOWSURE_DATA_DIR"
        ) from error


def pepper_of(settings: Settings, read: "Callable[[str, Path], Pepper]") -> "Pepper":
    """Return the pepper of API keys, read by ``find_pepper`` or ``make_pepper``.

    Raises
    ------
    CommandFailed
        If its file cannot be read or written.
    """
    try:
        return read(settings.key_pepper, settings.data_dir)
    except OSError as error:
        raise CommandFailed(
            f"{error.filename}: {error.strerror}; see HOWSURE_KEY_PEPPER"
        ) from error
