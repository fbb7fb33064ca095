"""The ``howsure`` command."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console

from service.cli import (
    access,
    backup,
    calibrate,
    calibrations,
    demo,
    evaluate,
    predict,
    report,
    serve,
)
from service.cli.failure import CommandFailed, one_sentence

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Calibrated probabilities, with intervals, for the answers of an ONNX classifier.",
)
app.command("serve")(serve.serve)
app.command("worker")(serve.worker)
app.command("calibrate")(calibrate.calibrate)
app.command("predict")(predict.predict)
app.command("report")(report.report)
app.command("evaluate")(evaluate.evaluate)
app.command("refit")(calibrations.refit)
app.command("export")(calibrations.export)
app.command("promote")(calibrations.promote)
app.command("compare")(report.compare)
app.command("bins")(calibrations.bins)
app.command("import")(calibrations.import_bins)
app.command("list")(calibrations.list_calibrations)
app.command("delete")(calibrations.delete)
app.command("demo")(demo.demo)
app.add_typer(backup.app, name="db")
app.add_typer(access.app, name="keys")
app.command("audit")(access.audit)
app.add_typer(access.tenants, name="tenants")


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"howsure {version('howsure')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Calibrated probabilities, with intervals, for the answers of an ONNX classifier."""


def main() -> None:
    """Run the command; a failure ends in one sentence and exit status 1."""
    try:
        with one_sentence():
            app()
    except CommandFailed as error:
        Console(stderr=True).print(str(error), style="red", markup=False, highlight=False)
        sys.exit(1)
