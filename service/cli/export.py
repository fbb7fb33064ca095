"""``howsure export``: a calibrated model as one ONNX file."""

from pathlib import Path
from typing import Annotated

import typer

from service.cli.connection import connect
from service.cli.failure import CommandFailed, check
from service.cli.options import UrlOption
from service.cli.references import address_of


def export(
    calibration: Annotated[str, typer.Argument(help="An id, a name, or name@version.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; else NAME-VERSION.onnx.")
    ] = None,
    url: UrlOption = None,
) -> None:
    """Write the model with its bins to one ONNX file, which needs no service to answer."""
    with connect(url) as client:
        answer = check(client.get(address_of(calibration, "model.onnx"), timeout=None))
    name = answer.headers["Content-Disposition"].partition('filename="')[2].rstrip('"')
    path = output or Path(Path(name).name)
    try:
        path.write_bytes(answer.content)
    except OSError as error:
        raise CommandFailed(f"cannot write {path}: {error.strerror}") from error
    typer.echo(f"{path}: {answer.headers['Howsure-Parity']}")
