"""Commands on one calibration, and ``howsure list``."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from howsure.client.request import Request, address_of
from howsure.printable import escaped
from service.cli.connection import service_client
from service.cli.console import (
    UrlOption,
    add_row,
    mark,
    print_findings,
    print_table,
    require_version,
    say,
)
from service.cli.failure import CommandFailed
from service.cli.report import write_file


def list_calibrations(
    name: Annotated[str | None, typer.Option(help="Only versions of this name.")] = None,
    status: Annotated[str | None, typer.Option(help="Only with this status.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many, newest first.")] = 50,
    url: UrlOption = None,
) -> None:
    """List calibrations, newest first."""
    params = {"name": name, "status": status, "limit": limit}
    with service_client(url) as client:
        page = client.send(Request("GET", "/calibrations", params)).json()
    table = Table("name", box=None, padding=(0, 1))
    for column in ("status", "top-1", "findings", "created", "id"):
        table.add_column(column, no_wrap=True)
    for row in page["calibrations"]:
        accuracy = (row["accuracy"] or {}).get("1")
        add_row(
            table,
            f"{row['name']}@{row['version']}",
            row["status"],
            "" if accuracy is None else f"{accuracy:.3f}",
            mark(row),
            row["created_at"][:10],
            row["id"],
        )
    print_table(table)
    for row in page["calibrations"]:
        if row["status"] == "failed":
            why = "{title}: {detail}".format_map(row["error"])
            say(f"{row['name']}@{row['version']} failed: {why}", style="red")
    if page["next_cursor"] is not None:
        say("there are more: raise --limit", style="dim")


def promote(
    calibration: Annotated[str, typer.Argument(help="An id, or name@version.")],
    url: UrlOption = None,
) -> None:
    """Make this version the one that its name means, until another is promoted."""
    require_version(calibration)
    with service_client(url) as client:
        found = client.promote(calibration)
    say(f"{found.name} now means {found.reference}")


def delete(
    calibration: Annotated[str, typer.Argument(help="An id, or name@version.")],
    evaluation: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Delete only this evaluation of a further set, and its set."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    url: UrlOption = None,
) -> None:
    """Delete a calibration with its tables and files, or one of its evaluations."""
    if evaluation is None:
        require_version(calibration)
    with service_client(url) as client:
        found = client.get(calibration)
        about = f"{found.reference} ({found.id}, {found.status})"
        if evaluation is not None:
            about = f"evaluation {evaluation} of {found.reference}"
        if not yes:
            typer.confirm(f"Delete {escaped(about)}?", abort=True)
        if evaluation is None:
            client.delete(found)
        else:
            client.send(Request("DELETE", address_of(found.id, "evaluations", evaluation)))
    say(f"deleted {found.reference if evaluation is None else about}")


def export(
    calibration: Annotated[str, typer.Argument(help="An id, a name, or name@version.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write; default: NAME-VERSION.onnx.", dir_okay=False
        ),
    ] = None,
    url: UrlOption = None,
) -> None:
    """Write the model with its bins to one ONNX file, which works without the service.

    Files with external weights are written beside it.
    """
    with service_client(url) as client:
        exported = client.export_model(client.get(calibration), output)
    checked = dict(part.split("=") for part in exported.parity.split("; "))
    say(
        f"{exported.path}: on {checked['samples']} samples its classes and bins are those of the "
        f"service, and no probability differs by more than {checked['probability']}"
    )
    if exported.beside:
        say(f"keep beside it: {', '.join(exported.beside)}")


def bins(
    calibration: Annotated[str, typer.Argument(help="An id, a name, or name@version.")],
    output_format: Annotated[
        Literal["json", "csv", "parquet"],
        typer.Option("--format", help="Format; only json can be imported."),
    ] = "json",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; default: print.")
    ] = None,
    url: UrlOption = None,
) -> None:
    """Print the bin tables of a calibration, or write them to a file."""
    if output_format == "parquet" and output is None:
        raise CommandFailed("Parquet is binary: use --output FILE.")
    with service_client(url) as client:
        params = {"format": output_format}
        answer = client.send(Request("GET", address_of(calibration, "bins"), params))
    if output is None:
        typer.echo(escaped(answer.content.decode()), nl=output_format == "json")
    else:
        write_file(output, answer.content)


def import_bins(
    file: Annotated[
        Path,
        typer.Argument(
            help="A file that `howsure bins --format json` wrote.", exists=True, dir_okay=False
        ),
    ],
    name: Annotated[
        str | None, typer.Option(help="New name; default: the name in the file.")
    ] = None,
    url: UrlOption = None,
) -> None:
    """Create a calibration from exported bin tables; its model must be stored here."""
    headers = {"Content-Type": "application/json"}
    with service_client(url) as client:
        request = Request(
            "POST",
            "/calibrations/import",
            {"name": name},
            headers,
            file.read_bytes(),
            repeatable=False,
        )
        made = client.send(request).json()
    say(f"{made['name']}@{made['version']}  {made['id']}")
    print_findings(made, reference=f"{made['name']}@{made['version']}")
