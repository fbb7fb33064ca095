"""``howsure predict``: answer the rows of a file, on the terminal or as a file of answers."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from service.cli.connection import connect
from service.cli.failure import CommandFailed, check
from service.cli.options import UrlOption
from service.cli.predict_table import predictions_table
from service.cli.scoring import DEFAULT_REQUESTS, Scoring, score_file


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
        typer.Option("--rows", min=1, help="Rows of a request, with --output; else what suits."),
    ] = None,
    requests: Annotated[
        int, typer.Option(min=1, max=16, help="Requests under way at a time, with --output.")
    ] = DEFAULT_REQUESTS,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew what was stopped, with --output.")
    ] = False,
    url: UrlOption = None,
) -> None:
    """Give each row's class and the calibrated probability that it is right."""
    if output is not None:
        scoring = Scoring(calibration, rows, output, rows_per_part, requests, restart)
        with connect(url) as client:
            n_rows = score_file(client, scoring)
        typer.echo(f"{n_rows} rows in {output}")
        return
    if rows.is_dir():
        raise CommandFailed(f"{rows} is a folder; its pictures are answered to a file, as with -o")
    body = _body(rows)
    with connect(url) as client:
        answer = check(client.post("/predict", json=body | {"calibration": calibration})).json()
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    Console().print(predictions_table(answer["predictions"]))


def _body(path: Path) -> dict[str, Any]:
    """Return what a file of JSON asks."""
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
