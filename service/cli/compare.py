"""``howsure compare``: calibrations side by side."""

from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from service.cli.connection import connect
from service.cli.failure import check
from service.cli.options import UrlOption
from service.cli.wide_console import wide_console

SHOWN = ("ece", "brier", "nll")


def compare(
    first: Annotated[str, typer.Argument(help="What the others are compared with.")],
    others: Annotated[list[str], typer.Argument(help="Ids, names, or name@version.")],
    url: UrlOption = None,
) -> None:
    """Set the served scores of calibrations side by side, and say which is better."""
    with connect(url) as client:
        params = {"calibration": [first, *others]}
        answer = check(client.get("/report", params=params)).json()
    console = wide_console()
    reports = answer["calibrations"]
    for k in dict.fromkeys(k for report in reports for k in report["events"]):
        console.print(_table(k, [report for report in reports if k in report["events"]]))
    for comparison in answer["comparisons"]:
        console.print(f"On {comparison['on']}:", style="dim")
        for sentence in comparison["sentences"]:
            console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def _table(k: str, reports: list[dict[str, Any]]) -> Table:
    table = Table(title=f"Top-{k}", title_justify="left", box=SIMPLE_HEAD)
    for column in ("calibration", "served by", "scores on"):
        table.add_column(column, no_wrap=True)
    for column in ("accuracy", *SHOWN):
        table.add_column(column, justify="right")
    for report in reports:
        event, found = report["events"][k], report["calibration"]
        served = event["measures"][event["served"]]
        if served["evaluation"] is not None:
            source, scores = "evaluation", served["evaluation"]
            accuracy = report["model_scores"]["evaluation"]["accuracy"][k]
        else:
            source, accuracy = "cross-validation", event["accuracy"]
            scores = {name: fold["mean"] for name, fold in served["scores"].items()}
        values = [accuracy, *(scores.get(score) for score in SHOWN)]
        table.add_row(
            f"{found['name']}@{found['version']}",
            event["served"],
            source,
            *("-" if value is None else f"{value:.4f}" for value in values),
        )
    return table
