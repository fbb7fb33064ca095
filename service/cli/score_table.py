"""The scores of a calibration as a table for the terminal."""

from typing import Any

import httpx
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from service.cli.failure import check

SHOWN = ("ece", "brier", "nll", "auroc", "aurc")
INSTEAD = {"ece": "ece_15"}


def print_calibration(console: Console, client: httpx.Client, resource: dict[str, Any]) -> None:
    """Print what a calibration is called, and its scores."""
    console.print(
        f"[bold]{resource['name']}@{resource['version']}[/bold]  {resource['id']}",
        highlight=False,
    )
    answer = client.get("/report", params={"calibration": resource["id"]})
    print_scores(console, check(answer).json())


def print_scores(console: Console, report: dict[str, Any]) -> None:
    """Print one table an event, measures first, then baselines; and which of them is best.

    A measure's ``ece`` is over its own bins; a baseline has none, and shows that of 15 equal
    ranges (``ece_15``).
    """
    for k, event in report["events"].items():
        table = Table(title=_title(report, k, event), title_justify="left", box=SIMPLE_HEAD)
        table.add_column("", no_wrap=True)
        table.add_column("bins", justify="right")
        for score in SHOWN:
            table.add_column(score, justify="right")
        for name, found in event["measures"].items():
            served = name == event["served"]
            table.add_row(
                f"{name} *" if served else name,
                str(len(found["bins"])),
                *_cells(found),
                style="bold" if served else "",
            )
        table.add_section()
        for name, found in event["baselines"].items():
            table.add_row(name, "", *_cells(found), style="dim")
        console.print(table)
        if event["verdict"] is not None:
            sentence = event["verdict"]["sentence"]
            console.print(sentence, markup=False, highlight=False, soft_wrap=True)
            console.print()
    console.print("* answers /predict; the ece of a baseline is over 15 equal ranges", style="dim")


def _title(report: dict[str, Any], k: str, event: dict[str, Any]) -> str:
    data = report["provenance"]["data"]
    judged = data.get("evaluation_samples")
    source = f"{judged} evaluation samples" if judged else "cross-validation"
    return f"Top-{k}: right {event['accuracy']:.4f} of the time; scores on {source}"


def _cells(found: dict[str, Any]) -> list[str]:
    cells = []
    for column in SHOWN:
        score = column if column in found["scores"] else INSTEAD.get(column, column)
        if found["evaluation"] is not None:
            value = found["evaluation"].get(score)
        else:
            value = (found["scores"].get(score) or {}).get("mean")
        cells.append("-" if value is None else f"{value:.4f}")
    return cells
