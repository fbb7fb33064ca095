"""``howsure calibrate``: upload a model and a labelled set, wait, print the scores."""

from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console

from service.cli.connection import connect
from service.cli.dry_run_table import print_dry_run
from service.cli.following import follow, print_warnings
from service.cli.given_config import given_config
from service.cli.options import (
    BinsOption,
    ClassMapOption,
    ConfigOption,
    PreprocessingOption,
    UrlOption,
)
from service.cli.references import address_of
from service.cli.score_table import print_calibration
from service.cli.upload import Upload, send_upload


def calibrate(  # noqa: PLR0913, PLR0917 - an option each
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[MODEL] CALIBRATION",
            help="The ONNX file and the labelled set, a file or a folder of pictures; only the "
            "set if it holds the outputs.",
            exists=True,
        ),
    ],
    evaluation: Annotated[
        Path | None,
        typer.Option(help="A second labelled set, for scores only.", exists=True),
    ] = None,
    model: Annotated[
        list[Path] | None,
        typer.Option(
            help="An ONNX file; repeated, the members of an ensemble.", exists=True, dir_okay=False
        ),
    ] = None,
    model_data: Annotated[
        list[Path] | None,
        typer.Option(help="Companion with external weights.", exists=True, dir_okay=False),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Labels of a set in .npy, as .npy.", exists=True, dir_okay=False),
    ] = None,
    evaluation_labels: Annotated[
        Path | None,
        typer.Option(
            help="Labels of an evaluation set in .npy, as .npy.", exists=True, dir_okay=False
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name; versions are counted per name.")] = None,
    bins: BinsOption = None,
    preprocessing: PreprocessingOption = None,
    class_map: ClassMapOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if a finding is a warning.")
    ] = False,
    strict_about: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE", help="Fail at this finding; repeat it for more."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and cost it only; nothing is kept.")
    ] = False,
    config: ConfigOption = None,
    url: UrlOption = None,
) -> None:
    """Calibrate an ONNX classifier, or an ensemble of them, and print its scores."""
    given, calibration = _split(files)
    settings = given_config(
        config, name=name, bins=bins, preprocessing=preprocessing, class_map=class_map
    )
    if strict or strict_about:
        settings["strict"] = strict or strict_about
    upload = Upload(
        calibration=calibration,
        onnx_models=[*given, *(model or [])],
        model_data=model_data or [],
        evaluation=evaluation,
        labels=labels,
        evaluation_labels=evaluation_labels,
        config=settings,
    )
    with connect(url) as client:
        if dry_run:
            print_dry_run(Console(), send_upload(client, upload, dry_run=True))
            return
        print_calibration(Console(), client, upload_and_wait(client, upload))


def upload_and_wait(client: httpx.Client, upload: Upload) -> dict[str, Any]:
    """Upload, show progress until the calibration ends, and return its resource.

    Raises
    ------
    CommandFailed
        If the upload is refused or the calibration does not succeed.
    """
    resource = send_upload(client, upload)
    resource = follow(client, address_of(resource["id"]), resource)
    print_warnings(resource)
    return resource


def _split(files: list[Path]) -> tuple[list[Path], Path]:
    if any(path.is_dir() for path in files[:-1]):
        raise typer.BadParameter(f"{files[0]} is a folder; the ONNX file comes before the set")
    if len(files) <= 2:  # noqa: PLR2004 - a model and a set
        return files[:-1], files[-1]
    raise typer.BadParameter("expected a model and a calibration set, or a set of outputs alone")
