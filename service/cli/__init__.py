"""The ``howsure`` command."""

import sys
from importlib.metadata import version
from typing import Annotated

import httpx
import typer
from rich.console import Console

from service.cli import (
    audit,
    bins,
    calibrate,
    compare,
    database,
    delete,
    demo,
    evaluate,
    export,
    import_bins,
    keys,
    list_,
    predict,
    promote,
    refit,
    report,
    serve,
    tenants,
    worker,
)
from service.cli.failure import CommandFailed

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Calibrated probabilities, with intervals, for the answers of an ONNX classifier.",
)
app.command("serve")(serve.serve)
app.command("worker")(worker.worker)
app.command("calibrate")(calibrate.calibrate)
app.command("predict")(predict.predict)
app.command("report")(report.report)
app.command("evaluate")(evaluate.evaluate)
app.command("refit")(refit.refit)
app.command("export")(export.export)
app.command("promote")(promote.promote)
app.command("compare")(compare.compare)
app.command("bins")(bins.bins)
app.command("import")(import_bins.import_bins)
app.command("list")(list_.list_calibrations)
app.command("delete")(delete.delete)
app.command("demo")(demo.demo)
app.add_typer(database.app, name="db")
app.add_typer(keys.app, name="keys")
app.command("audit")(audit.audit)
app.add_typer(tenants.app, name="tenants")


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
    console = Console(stderr=True)
    try:
        app()
    except CommandFailed as error:
        console.print(str(error), style="red", markup=False, highlight=False)
        sys.exit(1)
    except httpx.InvalidURL as error:
        console.print(f"--url: {error}", style="red", markup=False)
        sys.exit(1)
    except httpx.TransportError as error:
        console.print(f"no answer from the service: {error}", style="red", markup=False)
        sys.exit(1)
