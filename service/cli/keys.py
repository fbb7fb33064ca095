"""``howsure keys``: API keys and tenants, in the database directly."""

from datetime import timedelta
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from service.cli.failure import CommandFailed
from service.cli.opened_database import opened_database
from service.operations.api_keys import PREDICT, READ, SCOPES, WRITE, Pepper, make_pepper
from service.operations.api_keys.manage import (
    MadeKey,
    create_key,
    list_keys,
    revoke_key,
    rotate_key,
)
from service.settings import Settings
from service.storage.api_keys import ListedKey

app = typer.Typer(no_args_is_help=True, help="API keys: who may ask the service, and for what.")
TENANT = "default"
KeyId = Annotated[str, typer.Argument(help="Its id, as `howsure keys list` tells it.")]


@app.callback()
def _root() -> None:
    """Work on API keys."""


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="What it is for.")],
    tenant: Annotated[
        str, typer.Option(help="Whose calibrations it is for; made if there is none of this name.")
    ] = TENANT,
    scope: Annotated[
        list[str] | None, typer.Option(help=f"{', '.join(SCOPES)}; repeat it for more.")
    ] = None,
    days: Annotated[int, typer.Option(help="Until it expires.")] = 365,
) -> None:
    """Make a key and print it, once: it is kept nowhere. From then on every request needs one."""
    with opened_database() as (database, settings):
        made = create_key(
            database,
            _pepper(settings),
            name=name,
            tenant=tenant,
            scopes=scope or [PREDICT, READ, WRITE],
            days=days,
        )
    _show(made)


@app.command("list")
def show(
    tenant: Annotated[str | None, typer.Option(help="Of this tenant alone.")] = None,
) -> None:
    """Show the keys, without their secrets."""
    with opened_database() as (database, _):
        found = list_keys(database, tenant)
    table = Table(*("id", "tenant", "name", "scopes", "status", "expires", "last used"))
    for key in found:
        used = key.row.last_used_at
        table.add_row(
            key.row.id,
            key.tenant,
            key.row.name,
            " ".join(key.row.scopes),
            _status(key),
            f"{key.row.expires_at:%Y-%m-%d}",
            f"{used:%Y-%m-%d %H:%M}" if used else "",
        )
    Console().print(table)


@app.command("rotate")
def rotate(
    key_id: KeyId,
    overlap: Annotated[
        float, typer.Option(min=0, max=8760, help="Hours for which the old one is good still.")
    ] = 24.0,
) -> None:
    """Make a key in the place of another, and print it, once."""
    with opened_database() as (database, settings):
        pepper = _pepper(settings)
        made = rotate_key(database, pepper, key_id, overlap=timedelta(hours=overlap))
    _show(made)


@app.command("revoke")
def revoke(key_id: KeyId) -> None:
    """End a key for good; services that run know within seconds."""
    with opened_database() as (database, _):
        revoke_key(database, key_id)
    typer.echo(f"revoked {key_id}")


def _pepper(settings: Settings) -> Pepper:
    try:
        return make_pepper(settings.key_pepper, settings.data_dir)
    except OSError as error:
        raise CommandFailed(
            f"{error.filename}: {error.strerror}; see HOWSURE_KEY_PEPPER"
        ) from error


def _show(made: MadeKey) -> None:
    """Print the key alone on the output, so that a script can take it from there."""
    console = Console(stderr=True)
    console.print(
        f"key {made.id}, until {made.expires_at:%Y-%m-%d}; it is shown this once:",
        highlight=False,
    )
    typer.echo(made.text)


def _status(key: ListedKey) -> str:
    if key.row.revoked_at is not None:
        return "revoked"
    return "expired" if key.is_expired else "good"
