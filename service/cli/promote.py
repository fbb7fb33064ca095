"""``howsure promote``: which version a name means."""

from typing import Annotated

import typer

from service.cli.connection import connect
from service.cli.failure import check
from service.cli.options import UrlOption
from service.cli.references import address_of, require_version


def promote(
    calibration: Annotated[str, typer.Argument(help="An id, or name@version.")],
    url: UrlOption = None,
) -> None:
    """Let the name mean this version, until another is promoted."""
    require_version(calibration)
    with connect(url) as client:
        found = check(client.post(f"{address_of(calibration)}/promote")).json()
    typer.echo(f"{found['name']} now means {found['name']}@{found['version']}")
