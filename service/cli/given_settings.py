"""The settings of a command, and whether what they name is there."""

from pathlib import Path

from pydantic import ValidationError
from pydantic_settings import SettingsError
from sqlalchemy.exc import SQLAlchemyError

from service.cli.failure import CommandFailed
from service.errors import Overloaded, ServiceError
from service.operations.config_rules import violations_of
from service.settings import Settings
from service.storage.artifacts import open_artifact_store
from service.storage.database import open_database
from service.storage.schema import upgrade

DATABASE_URLS = "sqlite:///file or postgresql+psycopg://user:password@host/name"


def given_settings(**options: str | int | Path | None) -> Settings:
    """Return the settings; options that were given, those not None, come before variables.

    Raises
    ------
    CommandFailed
        If one is out of range or of another type; the sentence names the variable or the option.
    """
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]  # which pydantic is to check
    except ValidationError as error:
        lines = []
        for found in violations_of(error, Settings):
            name = found.location.removeprefix("config.")
            said = f"--{name.replace('_', '-')}" if name in given else _variable(name)
            lines.append(f"{said}: {found.message}")
        raise CommandFailed("\n".join(lines)) from error
    except SettingsError as error:
        raise CommandFailed(str(error)) from error


def prepare(settings: Settings) -> None:
    """Make the data folder and bring the database up to date, before anything is started.

    Raises
    ------
    CommandFailed
        If a folder cannot be made, or the database or the artifact store does not answer, is of
        another kind or does not let this service in.
    """
    _make_folder(settings.data_dir)
    url = settings.resolved_database_url()
    try:
        open_database(url).dispose()
    except (ValueError, SQLAlchemyError, ImportError) as error:
        raise CommandFailed(f"{_variable('database_url')}: expected {DATABASE_URLS}") from error
    try:
        upgrade(url)
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise CommandFailed(
            f"the database does not answer ({reason}); see {_variable('database_url')}"
        ) from error
    except ServiceError as error:
        raise CommandFailed(error.message) from error
    try:
        open_artifact_store(settings.resolved_artifacts_url()).check()
    except (ValueError, OSError) as error:
        raise CommandFailed(f"{_variable('artifacts_url')}: {error}") from error
    except Overloaded as error:
        raise CommandFailed(f"{_variable('artifacts_url')}: {error.message}") from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandFailed(
            f"cannot make the data folder {folder} ({error.strerror}); see {_variable('data_dir')}"
        ) from error


def _variable(name: str) -> str:
    return f"HOWSURE_{name.upper()}"
