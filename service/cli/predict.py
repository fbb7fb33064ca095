"""``howsure predict``: predictions for the rows of a file, on the terminal or in a file."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from howsure.client.request import json_request
from service.cli.connection import service_address, service_client
from service.cli.console import UrlOption, add_row
from service.cli.failure import CommandFailed

DEFAULT_REQUESTS = 3


def predictions_table(predictions: list[dict[str, Any]]) -> Table:
    """Return one line for each row and event."""
    table = Table("row", "class", "event", "probability", "interval", box=SIMPLE_HEAD)
    table.add_column("measure", no_wrap=True)
    table.add_column("bin", justify="right")
    for row, prediction in enumerate(predictions):
        events = [key for key in prediction if key.startswith("top")]
        for position, event in enumerate(events):
            found = prediction[event]
            lower, upper = found["interval"]
            add_row(
                table,
                str(row) if position == 0 else "",
                prediction["label"] if position == 0 else "",
                event,
                f"{found['probability']:.4f}",
                f"{lower:.3f} to {upper:.3f}",
                found["measure"],
                str(found["bin"]),
            )
    return table


def predict(
    calibration: Annotated[str, typer.Argument(help="An id, a name, or name@version.")],
    rows: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            help="JSON: a list of rows, or a /predict body. With --output a set of any format "
            "that is read: .npz, .npy, .csv, .parquet, pictures in an archive or a folder.",
            exists=True,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Answer every row of a set to this file: .parquet, .csv or .npz. The same "
            "command again goes on where it was stopped.",
            dir_okay=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    rows_per_part: Annotated[
        int | None,
        typer.Option(
            "--rows", min=1, help="Rows per request, with --output; default: by the size of a row."
        ),
    ] = None,
    requests: Annotated[
        int, typer.Option(min=1, max=16, help="Requests under way at a time, with --output.")
    ] = DEFAULT_REQUESTS,
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard the parts of a stopped run, with --output.")
    ] = False,
    url: UrlOption = None,
) -> None:
    """Give each row's class and the calibrated probability that it is right."""
    if output is not None:
        from service.cli.scoring.score_file import Scoring, score_file

        scoring = Scoring(calibration, rows, output, rows_per_part, requests, restart)
        with service_address(url) as address:
            n_rows = score_file(address, scoring)
        typer.echo(f"{n_rows} rows in {output}")
        return
    if rows.is_dir():
        raise CommandFailed(f"{rows} is a folder; its pictures are answered to a file, as with -o")
    body = _body(rows)
    with service_client(url) as client:
        asked = json_request("/predict", body | {"calibration": calibration}, headers={})
        answer = client.send(asked).json()
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    Console().print(predictions_table(answer["predictions"]))


def _body(path: Path) -> dict[str, Any]:
    """Return the request body in a JSON file."""
    try:
        body = json.loads(path.read_bytes())
    except RecursionError as error:
        raise CommandFailed(f"{path}: the lists are nested too deeply") from error
    except ValueError as error:
        raise CommandFailed(
            f"{path} is no JSON: {error}; a set of another format is answered to a file, as with "
            "-o answers.parquet"
        ) from error
    if isinstance(body, list):
        return {"inputs": body}
    if not isinstance(body, dict):
        raise CommandFailed(f"{path}: expected a list of rows or a /predict body")
    return body
