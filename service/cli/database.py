"""``howsure db``: the database's schema, backups of all that is kept, and restoring them."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from service.cli.failure import CommandFailed
from service.cli.given_settings import DATABASE_URLS, given_settings, prepare
from service.errors import ServiceError
from service.log_lines import configure_logging
from service.operations.backups import Manifest, back_up, restore
from service.operations.backups.progress import Tell
from service.settings import Settings
from service.storage.artifacts import ArtifactStore, open_artifact_store
from service.storage.database import open_database
from service.storage.engine import sqlite_path

app = typer.Typer(no_args_is_help=True, help="The database.")


@app.callback()
def _root() -> None:
    """Work on the database."""


@app.command("upgrade")
def upgrade_schema() -> None:
    """Bring the schema up to date; `howsure serve` does so itself."""
    prepare(given_settings())
    typer.echo("the schema is up to date")


@app.command("backup")
def back_up_all(
    target: Annotated[Path, typer.Argument(help="A folder that does not exist yet.")],
) -> None:
    """Write all rows and files, as they are at one moment; the service may run."""
    settings = _settings(must_exist=True)
    with _sentences(), _progress() as tell:
        database = open_database(settings.resolved_database_url())
        try:
            manifest = back_up(database, _artifacts(settings), target.resolve(), tell=tell)
        finally:
            database.dispose()
    typer.echo(f"{_contents(manifest)} in {target}")


@app.command("restore")
def restore_all(
    source: Annotated[Path, typer.Argument(help="The folder of a backup.", exists=True)],
) -> None:
    """Restore a backup into a database and a place for artifacts that are empty."""
    settings = _settings(must_exist=False)
    with _sentences(), _progress() as tell:
        manifest = restore(
            settings.resolved_database_url(), _artifacts(settings), source.resolve(), tell=tell
        )
    typer.echo(f"restored {_contents(manifest)}")


def _settings(*, must_exist: bool) -> Settings:
    settings = given_settings()
    # Of what goes wrong with a file the sentence at the end tells.
    configure_logging(settings.log_format, level=logging.ERROR)
    url = settings.resolved_database_url()
    try:
        path = sqlite_path(make_url(url))
        if must_exist and path is not None and not path.exists():
            raise CommandFailed(f"there is no database {path}; see HOWSURE_DATA_DIR")
        open_database(url).dispose()
    except (ValueError, SQLAlchemyError, ImportError) as error:
        raise CommandFailed(f"HOWSURE_DATABASE_URL: expected {DATABASE_URLS}") from error
    return settings


def _artifacts(settings: Settings) -> ArtifactStore:
    try:
        return open_artifact_store(settings.resolved_artifacts_url())
    except (ValueError, OSError) as error:
        raise CommandFailed(f"HOWSURE_ARTIFACTS_URL: {error}") from error


def _contents(manifest: Manifest) -> str:
    files = manifest.files
    return (
        f"{manifest.rows('calibration')} calibrations, {files.part.lines} files"
        f" ({decimal(files.bytes)})"
    )


@contextmanager
def _sentences() -> Iterator[None]:
    """Let a failure end the command with one sentence."""
    try:
        yield
    except ServiceError as error:
        raise CommandFailed(error.message) from error
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise CommandFailed(f"the database: {reason}; see HOWSURE_DATABASE_URL") from error
    except OSError as error:
        raise CommandFailed(f"{error.filename or 'file'}: {error.strerror or error}") from error


@contextmanager
def _progress() -> Iterator[Tell]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("rows", total=None)

        def tell(stage: str, done: int, total: int) -> None:
            progress.update(task, description=stage, completed=done, total=total or None)

        yield tell
