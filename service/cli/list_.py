"""``howsure list``: the calibrations."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from service.cli.connection import connect
from service.cli.failure import check
from service.cli.options import UrlOption


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
    table = Table("name", "version", "status", "samples", "accuracy", "created", "id")
    for row in page["calibrations"]:
        accuracy = (row["accuracy"] or {}).get("1")
        table.add_row(
            row["name"],
            str(row["version"]),
            row["status"],
            str(row["data"]["samples"]),
            "" if accuracy is None else f"{accuracy:.4f}",
            row["created_at"][:19].replace("T", " "),
            row["id"],
        )
    console = Console()
    console.print(table)
    if page["next_cursor"] is not None:
        console.print("there are more; raise --limit", style="dim")
