"""``howsure db``: schema upgrade, backup, restore and sweep."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal
from rich.progress import DownloadColumn, TimeRemainingColumn

from service.cli.console import progress_bar
from service.cli.local import load_settings, local_stores, prepare, refuse_service_address

if TYPE_CHECKING:
    from service.backups.back_up import Tell
    from service.backups.format import Manifest

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="The database and the files: schema upgrade, backup, restore and sweep.",
)


@app.command("upgrade")
def upgrade_schema() -> None:
    """Upgrade the schema; `howsure serve` does so at start."""
    refuse_service_address()
    prepare(load_settings())
    typer.echo("the schema is up to date")


@app.command("backup")
def back_up_all(
    target: Annotated[Path, typer.Argument(help="A folder that does not exist yet.")],
) -> None:
    """Write a consistent copy of all rows and files; the service may run."""
    from service.backups.back_up import back_up

    with local_stores(prepared=False, must_exist=True) as stores, _progress() as tell:
        manifest = back_up(stores.database, stores.artifacts, target.resolve(), tell=tell)
    typer.echo(f"{_contents(manifest)} in {target}")


@app.command("restore")
def restore_all(
    source: Annotated[Path, typer.Argument(help="The folder of a backup.", exists=True)],
) -> None:
    """Restore a backup into an empty database and an empty artifact store."""
    from service.backups.restore import restore

    with local_stores(prepared=False) as stores, _progress() as tell:
        url = stores.settings.resolved_database_url()
        manifest = restore(url, stores.artifacts, source.resolve(), tell=tell)
    typer.echo(f"restored {_contents(manifest)}")


def _contents(manifest: "Manifest") -> str:
    files = manifest.files
    return (
        f"{manifest.rows('calibration')} calibrations, {files.part.lines} files"
        f" ({decimal(files.bytes)})"
    )


@app.command("sweep")
def sweep_now() -> None:
    """Delete the files of what was deleted now, not an hour later; the service may run."""
    from service.storage.orphans import remove_orphans, remove_released
    from service.storage.schema import require_current

    with local_stores(prepared=False, must_exist=True) as stores:
        require_current(stores.database)
        released = remove_released(stores.database, stores.artifacts, older_than=timedelta())
        orphan_age = timedelta(seconds=stores.settings.orphan_seconds)
        swept = remove_orphans(stores.database, stores.artifacts, older_than=orphan_age)
    typer.echo(f"{released + swept.removed} files deleted")


@contextmanager
def _progress() -> "Iterator[Tell]":
    with progress_bar(DownloadColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task("rows", total=None)

        def tell(stage: str, done: int, total: int) -> None:
            progress.update(task, description=stage, completed=done, total=total or None)

        yield tell
