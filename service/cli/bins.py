"""``howsure bins``: the bin tables of a calibration, for other programs and other services."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from service.cli.connection import connect
from service.cli.failure import CommandFailed, check
from service.cli.options import UrlOption
from service.cli.references import address_of


class BinsFormat(enum.StrEnum):
    """How the tables are written."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def bins(
    calibration: Annotated[str, typer.Argument(help="An id, a name, or name@version.")],
    output_format: Annotated[
        BinsFormat, typer.Option("--format", help="How they are written; json can be imported.")
    ] = BinsFormat.JSON,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; else printed.")
    ] = None,
    url: UrlOption = None,
) -> None:
    """Print the bin tables of a calibration, or write them to a file."""
    if output_format is BinsFormat.PARQUET and output is None:
        raise CommandFailed("Parquet is no text to be printed: say where to, as in -o bins.parquet")
    with connect(url) as client:
        asked = {"format": output_format.value}
        answer = check(client.get(address_of(calibration, "bins"), params=asked))
    if output is None:
        typer.echo(answer.text, nl=output_format is BinsFormat.JSON)
        return
    try:
        output.write_bytes(answer.content)
    except OSError as error:
        raise CommandFailed(f"cannot write {output}: {error.strerror}") from error
