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
PreprocessingOption = Annotated[
    str | None,
    typer.Option(
        help="What makes pictures the model's input: imagenet, clip, none, JSON or a file of it."
    ),
]
ClassMapOption = Annotated[
    str | None,
    typer.Option(help="Index of each class by the name of its folder: JSON, or a file of it."),
]
