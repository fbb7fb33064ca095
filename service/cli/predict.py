"""``howsure predict``: answer the rows of a file."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from service.cli.connection import connect
from service.cli.failure import CommandFailed, check
from service.cli.options import UrlOption


def predict(
    calibration: Annotated[str, typer.Argument(help="An id, a name, or name@version.")],
    rows: Annotated[
        Path,
        typer.Argument(
            help="JSON: a list of rows, or a /predict body.", exists=True, dir_okay=False
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    url: UrlOption = None,
) -> None:
    """Print each row's class and the calibrated probability that it is right."""
    try:
        body = json.loads(rows.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise CommandFailed(f"{rows}: the lists are nested too deeply") from error
    except ValueError as error:
        raise CommandFailed(f"{rows} is no JSON: {error}") from error
    if isinstance(body, list):
        body = {"inputs": body}
    if not isinstance(body, dict):
        raise CommandFailed(f"{rows}: expected a list of rows or a /predict body")
    with connect(url) as client:
        answer = check(client.post("/predict", json=body | {"calibration": calibration})).json()
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    table = Table("row", "class", "event", "probability", "interval", box=SIMPLE_HEAD)
    table.add_column("measure", no_wrap=True)
    table.add_column("bin", justify="right")
    for row, prediction in enumerate(answer["predictions"]):
        events = [key for key in prediction if key.startswith("top")]
        for position, event in enumerate(events):
            found = prediction[event]
            lower, upper = found["interval"]
            table.add_row(
                str(row) if position == 0 else "",
                prediction["label"] if position == 0 else "",
                event,
                f"{found['probability']:.4f}",
                f"{lower:.3f} to {upper:.3f}",
                found["measure"],
                str(found["bin"]),
            )
    Console().print(table)
