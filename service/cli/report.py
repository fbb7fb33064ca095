"""``howsure report``: the scores of a calibration."""

import os
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from howsure.calibrate_command import TypedWords
from howsure.client import Calibration, Client
from howsure.client.request import Request
from howsure.printable import escaped
from service.cli.connection import service_client
from service.cli.console import (
    UrlOption,
    add_row,
    number,
    print_findings,
    print_table,
    say,
    table_of,
)
from service.cli.failure import CommandFailed

# If there is a screen, one of these is set. BROWSER may name a browser without a screen.
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def write_file(path: Path, content: bytes) -> None:
    """Write a file.

    Raises
    ------
    CommandFailed
        If it cannot be written.
    """
    try:
        path.write_bytes(content)
    except OSError as error:
        raise CommandFailed(f"cannot write {path}: {error.strerror}") from error


def show_file(path: Path) -> None:
    """Print the path of a file, and open the file in a browser if there is a screen."""
    say(str(path))
    if _is_screen() and not webbrowser.open(path.resolve().as_uri()):
        typer.echo("No browser was found to show it.", err=True)


def _is_screen() -> bool:
    """Tell whether there is a screen; without one a text browser would take the terminal."""
    return sys.platform in ("darwin", "win32") or any(map(os.environ.get, _SCREENS))


# Baselines have no bins, so calibration errors are over 15 equal ranges for all.
SHOWN = ("ece_15", "brier", "nll", "auroc", "aurc")
FOOTNOTE = (
    "* serves /predict. ece_15: calibration error, how far probabilities are off on average over "
    "15 equal ranges."
)


def print_calibration(client: Client, made: Calibration, typed: TypedWords | None = None) -> None:
    """Print the name of a calibration, and its scores."""
    title = Text.assemble((escaped(made.reference), "bold"), f"  {escaped(made.id)}")
    Console().print(title, highlight=False, soft_wrap=True)
    print_scores(client.report(made.id), typed)


def print_scores(report: dict[str, Any], typed: TypedWords | None = None) -> None:
    """Print a table for each event, measures first, then baselines.

    To standard error: notes and findings, and whether the calibration is fit for automatic use.
    ``typed`` has the words of the command that made it.
    """
    said, footnotes = set(), [FOOTNOTE]
    for k, event in report["events"].items():
        print_table(_methods(k, event))
        verdict = event["verdict"]
        if verdict is not None:
            say(f"{verdict['sentence']}\n")
            said.add(verdict["sentence"])
            footnotes.append(verdict.get("fitted_on", ""))
    notes = "\n".join(filter(None, dict.fromkeys(footnotes)))
    say(notes, style="dim")
    found = report["calibration"]
    reference, summary = f"{found['name']}@{found['version']}", report["summary"]
    lines = [summary["headline"], *summary["sentences"]]
    is_unfit = summary["status"] in ("unfit", "disproved")
    others = _other_rates(report["events"]) if is_unfit else ""
    if others:
        lines.append(f"other error rates: howsure refit {reference} --max-risk {others}")
    print_findings(
        report | {"warnings": [note for note in report["warnings"] if note not in said]},
        reference=reference,
        typed=typed,
        headline="\n  ".join(lines),
    )


def _methods(k: str, event: Mapping[str, Any]) -> Table:
    """Return the scores of an event: a row for each measure, then for each baseline."""
    table = table_of(_title(k, event), ("",), ("bins", *SHOWN))
    for name, found in event["measures"].items():
        served = name == event["served"]
        add_row(
            table,
            f"{name} *" if served else name,
            str(len(found["bins"])),
            *_cells(found),
            style="bold" if served else "",
        )
    table.add_section()
    for name, found in event["baselines"].items():
        add_row(table, name, "", *_cells(found), style="dim")
    return table


RATES = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
ROOM = 1.3  # above the error rate of all answers, so that the test passes


def _other_rates(events: Mapping[str, Any]) -> str:
    """Return larger error rates than were asked for, up to one that all answers should keep."""
    event = next(iter(events.values()))
    asked = [
        found["target"]["max_risk"] for found in event["measures"][event["served"]]["selective"]
    ]
    enough = ROOM * (1.0 - event["accuracy"])
    last = next((rate for rate in RATES if rate >= enough), 0.0)
    found = [rate for rate in RATES if max(asked, default=0.0) < rate <= last]
    return ",".join(f"{rate:g}" for rate in found)


def _title(k: str, event: Mapping[str, Any]) -> str:
    """Return the accuracy, the set that it and the scores are of, and how many samples it has."""
    figures = event["figures"]
    found = figures["accuracy"]
    if found is None:
        return f"Top-{k}"
    said = f"Top-{k}: accuracy {found['value']:.4f}"
    if figures["set"] == "evaluation":
        return f"{said} and scores on {found['n_samples']} evaluation samples"
    return f"{said} on {found['n_samples']} calibration samples; scores by cross-validation"


def _cells(found: dict[str, Any]) -> list[str]:
    """Return the scores on the evaluation set if there is one, else their means over the folds."""
    means = {name: fold["mean"] for name, fold in found["scores"].items()}
    return [number((found["evaluation"] or means).get(score)) for score in SHOWN]


def report(
    calibration: Annotated[str, typer.Argument(help="An id, a name, or name@version.")],
    output_format: Annotated[
        Literal["table", "json", "csv", "markdown", "model-card", "html"] | None,
        typer.Option("--format", help="Format; a table by default.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; default: print.")
    ] = None,
    opened: Annotated[
        bool,
        typer.Option(
            "--open", help="Write the file and open it in a browser; default: NAME-VERSION.html."
        ),
    ] = False,
    url: UrlOption = None,
) -> None:
    """Print the scores of a calibration, write them to a file, or show them in a browser."""
    chosen = output_format or ("html" if opened else "table")
    if opened and chosen != "html":
        raise CommandFailed(f"--open shows html, not {chosen}")
    with service_client(url) as client:
        params = {"calibration": calibration, "format": "json" if chosen == "table" else chosen}
        answer = client.send(Request("GET", "/report", params))
    if opened:
        path = output or answer.new_file(".html")
        write_file(path, answer.content)
        show_file(path)
    elif output is not None:
        write_file(output, answer.content)
    elif chosen == "table":
        found = answer.json()
        say("{name}@{version}".format_map(found["calibration"]))
        print_scores(found)
    else:
        typer.echo(escaped(answer.content.decode()))
