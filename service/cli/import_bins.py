"""``howsure import``: a calibration from the bin tables of another."""

from pathlib import Path
from typing import Annotated

import typer

from service.cli.connection import connect
from service.cli.failure import check
from service.cli.following import print_warnings
from service.cli.options import UrlOption

JSON = {"Content-Type": "application/json"}


def import_bins(
    file: Annotated[
        Path,
        typer.Argument(
            help="What `howsure bins --format json` wrote.", exists=True, dir_okay=False
        ),
    ],
    name: Annotated[str | None, typer.Option(help="What it is called; else as it was.")] = None,
    url: UrlOption = None,
) -> None:
    """Make a calibration that answers as exported tables say; its model must be known here."""
    asked = {} if name is None else {"name": name}
    with connect(url) as client:
        content = file.read_bytes()
        made = check(
            client.post("/calibrations/import", content=content, params=asked, headers=JSON)
        ).json()
    print_warnings(made)
    typer.echo(f"{made['name']}@{made['version']}  {made['id']}")
