"""``howsure list``: the calibrations."""

from typing import Annotated

import typer
from rich.table import Table

from service.cli.connection import connect
from service.cli.failure import check
from service.cli.options import UrlOption
from service.cli.wide_console import wide_console


def list_calibrations(
    name: Annotated[str | None, typer.Option(help="Only versions of this name.")] = None,
    status: Annotated[str | None, typer.Option(help="Only in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many, newest first.")] = 50,
    url: UrlOption = None,
) -> None:
    """List calibrations, newest first."""
    params = {"name": name, "status": status, "limit": limit}
    with connect(url) as client:
        page = check(
            client.get("/calibrations", params={k: v for k, v in params.items() if v is not None})
        ).json()
    table = Table("name", "status", "top-1", "created", box=None, padding=(0, 1))
    table.add_column("id", no_wrap=True)
    for row in page["calibrations"]:
        accuracy = (row["accuracy"] or {}).get("1")
        table.add_row(
            f"{row['name']}@{row['version']}",
            row["status"],
            "" if accuracy is None else f"{accuracy:.3f}",
            row["created_at"][:10],
            row["id"],
        )
    console = wide_console()
    console.print(table)
    if page["next_cursor"] is not None:
        console.print("there are more; raise --limit", style="dim")
