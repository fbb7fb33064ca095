"""``howsure delete``: remove a calibration."""

from typing import Annotated

import typer

from service.cli.connection import connect
from service.cli.failure import check
from service.cli.options import UrlOption
from service.cli.references import address_of, require_version


def delete(
    calibration: Annotated[str, typer.Argument(help="An id, or name@version.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    url: UrlOption = None,
) -> None:
    """Delete a calibration with its tables and files."""
    require_version(calibration)
    with connect(url) as client:
        found = check(client.get(address_of(calibration))).json()
        label = f"{found['name']}@{found['version']}"
        if not yes:
            typer.confirm(f"Delete {label} ({found['id']}, {found['status']})?", abort=True)
        check(client.delete(address_of(found["id"])))
    typer.echo(f"deleted {label}")
