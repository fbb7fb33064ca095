"""``howsure report``: the scores of a calibration."""

import enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from service.cli.connection import connect
from service.cli.failure import CommandFailed, check
from service.cli.options import UrlOption
from service.cli.score_table import print_scores


class ReportFormat(enum.StrEnum):
    """How the report is written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


def report(
    calibration: Annotated[str, typer.Argument(help="An id, a name, or name@version.")],
    output_format: Annotated[
        ReportFormat, typer.Option("--format", help="How it is written.")
    ] = ReportFormat.TABLE,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; else printed.")
    ] = None,
    url: UrlOption = None,
) -> None:
    """Print the scores of a calibration, or write them to a file."""
    asked = "json" if output_format is ReportFormat.TABLE else output_format.value
    with connect(url) as client:
        answer = check(client.get("/report", params={"calibration": calibration, "format": asked}))
    if output_format is ReportFormat.TABLE and output is None:
        print_scores(Console(), answer.json())
    elif output is None:
        typer.echo(answer.text)
    else:
        try:
            output.write_text(answer.text, encoding="utf-8")
        except OSError as error:
            raise CommandFailed(f"cannot write {output}: {error.strerror}") from error
