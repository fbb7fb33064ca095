"""``howsure tenants``: what each tenant may use, in the database directly."""

from dataclasses import astuple
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from service.cli.opened_database import opened_database
from service.operations.tenants.manage import limit_tenant, list_tenants

app = typer.Typer(no_args_is_help=True, help="Tenants: what each of them may use.")
DEFAULT = "default"
NONE = "none"


@app.callback()
def _root() -> None:
    """Work on tenants."""


@app.command("list")
def show() -> None:
    """Show the tenants and their limits."""
    from service.app import tenant_limits  # noqa: PLC0415 - takes a second

    with opened_database() as (database, settings):
        found = list_tenants(database, tenant_limits(settings))
    table = Table(*("tenant", "requests/s", "rows/min", "stored bytes", "jobs"))
    for name, limits in found:
        table.add_row(name, *(f"{limit:,}" if limit else NONE for limit in astuple(limits)))
    Console().print(table)


def _limit(text: str) -> int | None:
    if text == DEFAULT:
        return None
    if text == NONE:
        return 0
    if not (text.isascii() and text.isdecimal()):
        raise typer.BadParameter(f"expected a whole number, {NONE!r} or {DEFAULT!r}, got {text!a}")
    return int(text)


@app.command("limit")
def limit(
    name: Annotated[str, typer.Argument(help="The tenant, as `howsure tenants list` tells it.")],
    requests_per_second: Annotated[str, typer.Option(metavar="N", help="Requests.")] = "",
    rows_per_minute: Annotated[str, typer.Option(metavar="N", help="Rows of predictions.")] = "",
    stored_bytes: Annotated[str, typer.Option(metavar="N", help="Bytes of all files.")] = "",
    jobs: Annotated[str, typer.Option(metavar="N", help="Jobs queued or running.")] = "",
) -> None:
    """Change what a tenant may use: each a number, `none`, or `default` for what the settings say.

    Services that run know within seconds.
    """
    given = {
        "requests_per_second": requests_per_second,
        "rows_per_minute": rows_per_minute,
        "stored_bytes": stored_bytes,
        "jobs": jobs,
    }
    changes = {what: _limit(text) for what, text in given.items() if text}
    with opened_database() as (database, _):
        limit_tenant(database, name, changes)
    typer.echo(f"changed {name}")
