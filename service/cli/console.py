"""Shared options and output of commands."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from howsure.client import JobFailed, Progress
from service.cli.failure import CommandFailed


def require_version(calibration: str) -> None:
    """Refuse a bare name, whose meaning may change.

    Raises
    ------
    CommandFailed
        If it is neither an id nor ``name@version``.
    """
    if "@" in calibration:
        return
    try:
        UUID(calibration)
    except ValueError:
        raise CommandFailed(
            f"{calibration!r} does not name a version: write {calibration}@1, for example, or "
            "the id (see `howsure list`)"
        ) from None


UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="HOWSURE_URL",
        help="Address of a running service; without it, the command runs one itself.",
    ),
]
ConfigOption = Annotated[
    str | None, typer.Option("--config", help="Configuration: JSON or a JSON file.")
]
BinsOption = Annotated[str | None, typer.Option("--bins", help="Number of bins, or auto.")]
PreprocessingOption = Annotated[
    str | None,
    typer.Option(help="Preprocessing of pictures: imagenet, clip, none, JSON or a JSON file."),
]
ClassMapOption = Annotated[
    str | None,
    typer.Option(help="Class index by folder name: JSON or a JSON file."),
]


WIDTH = 200


def wide_console() -> Console:
    """Return a console whose long lines the terminal wraps, so that tables stay complete."""
    return Console(width=WIDTH)


def add_row(table: Table, *cells: str, style: str | None = None) -> None:
    """Add a row of plain text: names may look like markup."""
    table.add_row(*map(Text, cells), style=style)


def number(value: float | None) -> str:
    """Return a number as tables show it."""
    return "-" if value is None else f"{value:.4f}"


# Slower rates are shown with decimals.
SLOW = 10.0


@contextmanager
def job_progress() -> Iterator[Callable[[Progress], None]]:
    """Show the progress of a job; if it fails, print its findings and warnings."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[pace]}"),
    )
    try:
        with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("queued", total=None, pace="")

            def show(progress: Progress) -> None:
                stage = progress.stage or progress.status
                total = progress.total or None
                bar.update(
                    task,
                    description=stage,
                    completed=progress.done,
                    total=total,
                    pace=pace(progress),
                )

            yield show
    except JobFailed as error:
        print_warnings(error.resource)
        raise


def print_warnings(resource: Mapping[str, Any], console: Console | None = None) -> None:
    """Print the findings and warnings of a calibration, by default to standard error.

    ``docs/findings.md`` explains the codes of findings.
    """
    console = console or Console(stderr=True)
    for found in resource.get("findings", []):
        style = "yellow" if found["level"] == "warning" else "cyan"
        text = f"{found['level']} ({found['code']}): {found['message']}"
        console.print(text, style=style, markup=False, soft_wrap=True)
    for warning in resource.get("warnings", []):
        console.print(f"warning: {warning}", style="yellow", markup=False, soft_wrap=True)


def pace(progress: Progress) -> str:
    """Return the speed of the current stage and the time it will take, as far as known."""
    rate, left = progress.rows_per_second, progress.eta_seconds
    said = [] if rate is None else [f"{rate:,.0f}/s" if rate >= SLOW else f"{rate:.3g}/s"]
    return ", ".join(said if left is None else [*said, f"{_duration(left)} left"])


def _duration(seconds: float) -> str:
    for unit, name in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"
