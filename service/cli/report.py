"""``howsure report``: the scores of a calibration."""

import enum
from pathlib import Path
from typing import Annotated

import httpx
import typer
from rich.console import Console

from service.cli.connection import connect
from service.cli.failure import CommandFailed, check
from service.cli.options import UrlOption
from service.cli.score_table import print_scores
from service.cli.shown_file import show_file


class ReportFormat(enum.StrEnum):
    """How the report is written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    MODEL_CARD = "model-card"
    HTML = "html"


def report(
    calibration: Annotated[str, typer.Argument(help="An id, a name, or name@version.")],
    output_format: Annotated[
        ReportFormat | None,
        typer.Option("--format", help="How it is written; a table by default.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; else printed.")
    ] = None,
    opened: Annotated[
        bool,
        typer.Option(
            "--open", help="Show it in a browser, from a file: --output, or NAME-VERSION.html."
        ),
    ] = False,
    url: UrlOption = None,
) -> None:
    """Print the scores of a calibration, write them to a file, or show them in a browser."""
    chosen = output_format or (ReportFormat.HTML if opened else ReportFormat.TABLE)
    if opened and chosen is not ReportFormat.HTML:
        raise CommandFailed(f"--open shows html, and not {chosen.value}")
    asked = "json" if chosen is ReportFormat.TABLE else chosen.value
    with connect(url) as client:
        answer = check(client.get("/report", params={"calibration": calibration, "format": asked}))
    if opened:
        path = output or Path(_name_of(answer))
        _write(path, answer.text)
        show_file(path)
    elif output is not None:
        _write(output, answer.text)
    elif chosen is ReportFormat.TABLE:
        print_scores(Console(), answer.json())
    else:
        typer.echo(answer.text)


def _name_of(answer: httpx.Response) -> str:
    """Return what the service calls the file, and no more than a name."""
    found = answer.headers["Content-Disposition"].partition('filename="')[2].rstrip('"')
    return Path(found).name


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"cannot write {path}: {error.strerror}") from error
