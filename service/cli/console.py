"""Shared options and output of commands: tables, progress, findings and notes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, TypeVar
from uuid import UUID

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    ProgressColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
)
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from howsure import numbers
from howsure.calibrate_command import TypedWords
from howsure.client import JobFailed, Progress
from howsure.printable import escaped
from howsure.remedies import remedy_of
from howsure.remedy_texts import Remedy
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
        metavar="URL",
        envvar="HOWSURE_URL",
        help="Address of a running service; without it, the command runs one itself.",
    ),
]


Command = TypeVar("Command", bound=Callable[..., None])


def optional(metavar: str, text: str, kind: Any = str, *, panel: str | None = None) -> Any:  # noqa: ANN401 - any type
    """Return the annotation of an option that may be left out, for `with_options`."""
    return Annotated[kind | None, typer.Option(metavar=metavar, help=text, rich_help_panel=panel)]


def with_options(options: Mapping[str, Any]) -> Callable[[Command], Command]:
    """Give a command options, which it takes as ``**options``: each is None if it is left out.

    The help shows them before the keyword-only parameters of the command.
    """
    added = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in options.items()
    ]

    def decorate(command: Command) -> Command:
        *own, _ = signature(command).parameters.values()
        before = [one for one in own if one.kind is not Parameter.KEYWORD_ONLY]
        parameters = [*before, *added, *own[len(before) :]]
        vars(command)["__signature__"] = Signature(parameters)
        return command

    return decorate


def say(text: str, console: Console | None = None, *, style: str | None = None) -> None:
    """Print a text, to standard output by default: names may look like markup, or hold escapes."""
    console = console or Console()
    console.print(Text(escaped(text)), style=style, soft_wrap=True)


# A column of text is not made narrower than this; the last columns are left out instead.
NARROWEST = 12
UNLIMITED = 100_000


def print_table(table: Table) -> None:
    """Print a table without cutting a cell: ``no_wrap`` columns whole, others wrapped.

    Pipes and files get lines of any length. On a terminal the last columns are left out if they do
    not fit, and a line names them.
    """
    for column in table.columns:
        column.overflow = "fold"
    console = Console()
    if not console.is_terminal:
        unlimited = Console(width=UNLIMITED)
        Console(width=max(console.width, unlimited.measure(table).maximum)).print(table)
        return
    omitted: list[str] = []
    while len(table.columns) > 1 and _least_width(table, console) > console.width:
        omitted.insert(0, str(table.columns.pop().header))
    console.print(table)
    if omitted:
        names = ", ".join(omitted)
        console.print(f"not shown in a terminal this narrow: {names}", style="dim", markup=False)


def _least_width(table: Table, console: Console) -> int:
    """Return a width that suffices for whole ``no_wrap`` columns and narrow other ones."""
    # Padding, and lines between columns and at the edges.
    width = 1 + (sum(table.padding[1::2]) + 1) * len(table.columns)
    for column in table.columns:
        whole = max(console.measure(text).maximum for text in (column.header, *column.cells))
        width += whole if column.no_wrap else min(whole, NARROWEST)
    return width


def add_row(table: Table, *cells: str, style: str | None = None) -> None:
    """Add a row of plain text: names may look like markup, or hold escapes."""
    table.add_row(*(Text(escaped(cell)) for cell in cells), style=style)


def number(value: float | None) -> str:
    """Return a number as tables show it."""
    return "-" if value is None else f"{value:.4f}"


def table_of(title: str, texts: Iterable[str], numbers: Iterable[str]) -> Table:
    """Return a table with columns of text, then columns of numbers, which are never wrapped."""
    named = Text(title, style="table.title") if title else None
    table = Table(title=named, title_justify="left", box=SIMPLE_HEAD)
    for column in texts:
        table.add_column(column)
    for column in numbers:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def progress_bar(*columns: ProgressColumn) -> Bar:
    """Return a bar on standard error with more columns; at the end it disappears."""
    text = TextColumn("{task.description}", markup=False)
    first = (SpinnerColumn(), text, BarColumn())
    return Bar(*first, *columns, console=Console(stderr=True), transient=True)


# Slower rates are shown with decimals.
SLOW = 10.0


@contextmanager
def job_progress(typed: TypedWords | None = None) -> Iterator[Callable[[Progress], None]]:
    """Show the progress of a job; if it fails, print its findings and notes.

    ``typed`` has the words of the command that started it.
    """
    try:
        with progress_bar(TaskProgressColumn(), TextColumn("{task.fields[pace]}")) as bar:
            task = bar.add_task("queued", total=None, pace="")

            def show(progress: Progress) -> None:
                stage = escaped(progress.stage or progress.status)
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
        print_findings(error.resource, typed=typed)
        raise


def pace(progress: Progress) -> str:
    """Return the speed of the current stage and the time it will take, as far as known."""
    rate, left = progress.rows_per_second, progress.eta_seconds
    said = [] if rate is None else [f"{rate:,.0f}/s" if rate >= SLOW else f"{rate:.3g}/s"]
    return ", ".join(said if left is None else [*said, f"{numbers.seconds(left)} left"])


STYLES = {"warning": "bold yellow", "notice": "cyan"}


def print_findings(
    resource: Mapping[str, Any],
    console: Console | None = None,
    *,
    reference: str = "NAME",
    typed: TypedWords | None = None,
    headline: str = "",
) -> None:
    """Print notes, then notices, then the headline and warnings, which should be the last lines.

    They go to standard error by default. ``reference`` is what commands call the calibration,
    ``typed`` the words of the command that makes it.
    """
    console = console or Console(stderr=True)
    for note in resource.get("warnings", []):
        say(f"note: {note}", console)
    found = resource.get("findings", [])
    for level in ("notice", "warning"):
        if level == "warning" and headline:
            say(headline, console)
        for finding in (one for one in found if one["level"] == level):
            fix = remedy_of(finding, resource.get("provenance", resource), reference, typed=typed)
            print_finding(console, finding, fix)


def print_finding(console: Console, finding: Mapping[str, Any], fix: Remedy, *more: str) -> None:
    """Print a finding, its remedy, more lines, and where it is explained."""
    lines = [fix.text, *(f"  {line}" for line in fix.code.splitlines())] if fix.text else []
    lines += [*more, f"see docs/findings.md#{finding['code']}"]
    said = f"{finding['level']} ({finding['code']}): {finding['message']}"
    text = "\n".join([said, *(f"  {line}" for line in lines)])
    say(text, console, style=STYLES[finding["level"]])


def mark(resource: Mapping[str, Any]) -> str:
    """Return the findings of a calibration in a few words; empty if there is none."""
    levels = [finding["level"] for finding in resource["findings"]]
    counts = ((level, levels.count(level)) for level in STYLES)
    return ", ".join(f"{n} {level}{'s' * (n > 1)}" for level, n in counts if n)
