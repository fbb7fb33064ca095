"""Options that several commands share."""

from typing import Annotated

import typer

UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="HOWSURE_URL",
        help="Address of a running service; without it, work in this process.",
    ),
]
ConfigOption = Annotated[
    str | None, typer.Option("--config", help="Configuration: JSON, or a file that holds it.")
]
BinsOption = Annotated[str | None, typer.Option("--bins", help="Number of bins, or auto.")]
