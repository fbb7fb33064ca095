"""``howsure calibrate``: upload a model and a labelled set, wait, print the scores."""

import json
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console

from service.cli.connection import connect
from service.cli.failure import check
from service.cli.following import follow, print_warnings
from service.cli.given_config import given_config
from service.cli.options import (
    BinsOption,
    ClassMapOption,
    ConfigOption,
    PreprocessingOption,
    UrlOption,
)
from service.cli.packed_folder import one_file
from service.cli.references import address_of
from service.cli.score_table import print_calibration


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
    config: ConfigOption = None,
    url: UrlOption = None,
) -> None:
    """Calibrate an ONNX classifier, or an ensemble of them, and print its scores."""
    given, calibration = _split(files)
    settings = given_config(
        config, name=name, bins=bins, preprocessing=preprocessing, class_map=class_map
    )
    with connect(url) as client:
        resource = upload_and_wait(
            client,
            calibration=calibration,
            onnx_models=[*given, *(model or [])],
            model_data=model_data or [],
            evaluation=evaluation,
            labels=labels,
            evaluation_labels=evaluation_labels,
            config=settings,
        )
        print_calibration(Console(), client, resource)


def upload_and_wait(
    client: httpx.Client,
    *,
    calibration: Path,
    onnx_models: Sequence[Path] = (),
    model_data: Sequence[Path] = (),
    evaluation: Path | None = None,
    labels: Path | None = None,
    evaluation_labels: Path | None = None,
    config: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Upload, show progress until the calibration ends, and return its resource.

    Raises
    ------
    CommandFailed
        If the upload is refused or the calibration does not succeed.
    """
    # Whoever sends it again, a proxy for one, makes no second calibration.
    key = {"Idempotency-Key": f'"{uuid.uuid4()}"'}
    with ExitStack() as stack:
        paths = [("model", path) for path in onnx_models]
        paths += [("model_data", path) for path in model_data]
        paths += [("calibration", calibration)]
        further = {
            "evaluation": evaluation,
            "calibration_labels": labels,
            "evaluation_labels": evaluation_labels,
        }
        paths += [(part, path) for part, path in further.items() if path is not None]
        parts: list[tuple[str, Any]] = []
        for part, path in paths:
            file = stack.enter_context(one_file(path))
            parts.append((part, (path.name, stack.enter_context(file.open("rb")))))
        parts.append(("config", (None, json.dumps(config or {}))))
        response = check(client.post("/calibrate", files=parts, headers=key, timeout=None))
    resource: dict[str, Any] = response.json()
    resource = follow(client, address_of(resource["id"]), resource)
    print_warnings(resource)
    return resource


def _split(files: list[Path]) -> tuple[list[Path], Path]:
    if any(path.is_dir() for path in files[:-1]):
        raise typer.BadParameter(f"{files[0]} is a folder; the ONNX file comes before the set")
    if len(files) <= 2:  # noqa: PLR2004 - a model and a set
        return files[:-1], files[-1]
    raise typer.BadParameter("expected a model and a calibration set, or a set of outputs alone")
