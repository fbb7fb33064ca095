"""The scores of a calibration as a table for the terminal."""

from typing import Any

from rich.console import Console
from rich.table import Table

SHOWN = ("ece", "brier", "nll", "auroc", "aurc", "eor")


def print_scores(console: Console, report: dict[str, Any]) -> None:
    """Print one table an event: measures first, then the baselines they are to beat."""
    for k, event in report["events"].items():
        table = Table(title=_title(report, k, event), title_justify="left")
        table.add_column("")
        table.add_column("bins", justify="right")
        for score in SHOWN:
            table.add_column(score, justify="right")
        for name, found in event["measures"].items():
            served = name == event["served"]
            table.add_row(
                f"{name} (served)" if served else name,
                str(len(found["bins"])),
                *_cells(found),
                style="bold" if served else "",
            )
        table.add_section()
        for name, found in event["baselines"].items():
            table.add_row(name, "", *_cells(found), style="dim")
        console.print(table)


def _title(report: dict[str, Any], k: str, event: dict[str, Any]) -> str:
    data = report["provenance"]["data"]
    judged = data.get("evaluation_samples")
    source = f"{judged} evaluation samples" if judged else "cross-validation"
    return f"Top-{k}: right {event['accuracy']:.4f} of the time; scores on {source}"


def _cells(found: dict[str, Any]) -> list[str]:
    cells = []
    for score in SHOWN:
        if found["evaluation"] is not None:
            value, spread = found["evaluation"].get(score), None
        else:
            fold = found["scores"].get(score) or {}
            value, spread = fold.get("mean"), fold.get("std")
        text = "-" if value is None else f"{value:.4f}"
        cells.append(text if spread is None else f"{text} ± {spread:.4f}")
    return cells
