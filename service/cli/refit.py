"""``howsure refit``: a new version with other options, without running the model."""

from typing import Annotated

import typer
from rich.console import Console

from service.cli.connection import connect
from service.cli.failure import check
from service.cli.following import follow, print_warnings
from service.cli.given_config import given_config
from service.cli.options import BinsOption, ConfigOption, UrlOption
from service.cli.references import address_of
from service.cli.score_table import print_calibration


def refit(
    calibration: Annotated[str, typer.Argument(help="An id, a name, or name@version.")],
    bins: BinsOption = None,
    lookup: Annotated[
        str | None, typer.Option(help="step, or interpolated: linear between the bins' means.")
    ] = None,
    config: ConfigOption = None,
    url: UrlOption = None,
) -> None:
    """Fit a calibration anew from its records, as the next version of its name."""
    changes = given_config(config, bins=bins, lookup=lookup)
    with connect(url) as client:
        made = check(client.post(f"{address_of(calibration)}/refit", json=changes)).json()
        resource = follow(client, address_of(made["id"]), made)
        print_warnings(resource)
        print_calibration(Console(), client, resource)
