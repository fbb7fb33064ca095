"""``howsure predict``: predictions for the rows of a file, on the terminal or in a file."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import JustifyMethod
from rich.table import Table

from howsure.client.request import Request, json_request
from service.child.magic_bytes import media_type_of, other_format
from service.cli.connection import service_address, service_client
from service.cli.console import UrlOption, add_row, print_table
from service.cli.failure import CommandFailed, read_json

DEFAULT_REQUESTS = 3
READABLE = "expected rows as JSON, .csv, .parquet or .npy, or a JPEG, PNG or WebP picture"
# Files that may hold labels or many pictures.
SETS = (".npz", ".zip", ".tar")
RECORDS = "write a list of rows by column name, as DataFrame.to_json(path, orient='records') does"
KINDS = {"inputs", "logits", "probabilities", "scores"}
MOST_PRINTED = 50


# Columns of text that wraps; the first two are left out if no row has a value.
OPTIONAL, WRAPPED = ("class", "flags"), ("class", "flags", "measure")


def predictions_table(predictions: list[dict[str, Any]]) -> Table:
    """Return a table with a line for each row and event, with flags if any row has one."""
    lines = [
        {
            "row": str(row) if position == 0 else "",
            "class": prediction.get("label", "") if position == 0 else "",
            "event": event,
            "probability": f"{prediction[event]['probability']:.4f}",
            "interval": "{:.3f} to {:.3f}".format(*prediction[event]["interval"]),
            "flags": _flags(prediction) if position == 0 else "",
            "measure": prediction[event]["measure"],
            "bin": str(prediction[event]["bin"]),
        }
        for row, prediction in enumerate(predictions)
        for position, event in enumerate(key for key in prediction if key.startswith("top"))
    ]
    names = [name for name in lines[0] if name not in OPTIONAL or any(row[name] for row in lines)]
    table = Table(box=SIMPLE_HEAD)
    for name in names:
        justify: JustifyMethod = "right" if name == "bin" else "left"
        table.add_column(name, justify=justify, no_wrap=name not in WRAPPED)
    for line in lines:
        add_row(table, *(line[name] for name in names))
    return table


def _flags(prediction: dict[str, Any]) -> str:
    """Return what speaks against a prediction."""
    found = ["out of distribution"] if prediction.get("out_of_distribution") else []
    found += ["adversarial"] if prediction.get("adversarial") else []
    names = [name for name, left in prediction.get("abstain", {}).items() if left]
    return ", ".join([*found, *([f"abstain ({', '.join(names)})"] if names else [])])


BY_POSITION = "The rows have no column names: read in the order of the calibration."


def predict(
    calibration: Annotated[str, typer.Argument(help="An id, a name, or name@version.")],
    rows: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            help="Rows: .json (a list of rows or a /predict body), .csv, .parquet, .npy, or a "
            "picture. With --output also .npz, and pictures in an archive or a folder.",
            exists=True,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write predictions for every row of a set to this file: .parquet, .csv or .npz.",
            dir_okay=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the response as JSON.")] = False,
    rows_per_request: Annotated[
        int | None,
        typer.Option(
            "--rows", min=1, help="Rows per request, with --output; default: by row size."
        ),
    ] = None,
    requests: Annotated[
        int, typer.Option(min=1, max=16, help="Parallel requests, with --output.")
    ] = DEFAULT_REQUESTS,
    url: UrlOption = None,
) -> None:
    """Print the class of each row and the calibrated probability that it is right."""
    if output is not None:
        if as_json:
            raise CommandFailed("--json prints the response, and -o writes a table: choose one")
        from service.cli.scoring.score_file import Scoring, score_file

        scoring = Scoring(calibration, rows, output, rows_per_request, requests)
        with service_address(url) as address:
            written = score_file(address, scoring)
        if written.by_position:
            typer.echo(BY_POSITION, err=True)
        _warn(written.n_out_of_distribution, written.n_rows)
        typer.echo(f"{written.n_rows} rows written to {output}", err=True)
        return
    if rows_per_request is not None or requests != DEFAULT_REQUESTS:
        raise CommandFailed("--rows and --requests need -o FILE")
    with service_client(url) as client:
        answer = client.send(_request(calibration, rows)).json()
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    if "columns" in answer:
        typer.echo(BY_POSITION, err=True)
    predictions = answer["predictions"]
    print_table(predictions_table(predictions[:MOST_PRINTED]))
    _warn(sum(bool(row["out_of_distribution"]) for row in predictions), len(predictions))
    if len(predictions) > MOST_PRINTED:
        left = len(predictions) - MOST_PRINTED
        typer.echo(f"{left} more rows; -o answers.csv writes all of them", err=True)


def _warn(n_strange: int, n_rows: int) -> None:
    """Say on stderr how many rows are out of distribution, if any."""
    if n_strange:
        typer.echo(
            f"out of distribution: {n_strange} of {n_rows} rows are less certain than "
            "nearly all of the calibration set, or have numbers far outside it, as in another unit "
            "or on another scale; do not rely on their probabilities.",
            err=True,
        )


def _request(calibration: str, path: Path) -> Request:
    """Return the request for the rows in a file."""
    if path.is_dir() or path.suffix.lower() in SETS:
        raise CommandFailed(f"{path} is a set: write its predictions to a file: -o answers.parquet")
    content = path.read_bytes()
    media_type = "text/csv" if path.suffix.lower() == ".csv" else media_type_of(content)
    if media_type is None:
        body = _body(path, content) | {"calibration": calibration}
        return json_request("/predict", body, headers={})
    headers = {"Content-Type": media_type, "Accept": "application/json"}
    params = {"calibration": calibration}
    return Request("POST", "/predict", params, headers, content)


def _body(path: Path, content: bytes) -> dict[str, Any]:
    """Return the request body in a JSON file."""
    try:
        body = read_json(content, str(path))
    except CommandFailed as error:
        name, _ = other_format(content) or ("", "")
        said = error if name in {"", "JSON"} else f"{path} is {name}"
        if "Extra data" in str(error):
            raise CommandFailed(
                f"{path} holds several JSON values, as JSON lines: {RECORDS}"
            ) from error
        raise CommandFailed(f"{said}; {READABLE}") from error
    if isinstance(body, list):
        return {"inputs": body}
    if not isinstance(body, dict):
        raise CommandFailed(f"{path}: expected a list of rows or a /predict body")
    if body and all(isinstance(value, int | float) for value in body.values()):
        return {"inputs": [body]}  # one row by column name
    if not body.keys() & KINDS:
        raise CommandFailed(f"{path}: expected a list of rows or a /predict body: {RECORDS}")
    return body
