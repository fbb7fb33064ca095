"""``howsure calibrate``: upload a model and a labelled set, wait, print the scores."""

import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

from service.cli.connection import connect
from service.cli.failure import CommandFailed, check
from service.cli.options import UrlOption
from service.cli.score_table import print_scores

POLL_SECONDS = 0.1
FINISHED = {"succeeded", "failed", "cancelled"}


def calibrate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[MODEL] CALIBRATION",
            help="The ONNX file and the labelled set; only the set if it holds the outputs.",
            exists=True,
            dir_okay=False,
        ),
    ],
    evaluation: Annotated[
        Path | None,
        typer.Option(help="A second labelled set, for scores only.", exists=True, dir_okay=False),
    ] = None,
    model_data: Annotated[
        list[Path] | None,
        typer.Option(help="Companion with external weights.", exists=True, dir_okay=False),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name; versions are counted per name.")] = None,
    bins: Annotated[str | None, typer.Option(help="Number of bins, or auto.")] = None,
    config: Annotated[
        str | None, typer.Option(help="Configuration: JSON, or a file that holds it.")
    ] = None,
    url: UrlOption = None,
) -> None:
    """Calibrate an ONNX classifier on a labelled set and print its scores."""
    model, calibration = _split(files)
    settings = _config(config, name=name, bins=bins)
    with connect(url) as client:
        resource = upload_and_wait(
            client,
            calibration=calibration,
            model=model,
            model_data=model_data or [],
            evaluation=evaluation,
            config=settings,
        )
        console = Console()
        console.print(
            f"[bold]{resource['name']}@{resource['version']}[/bold]  {resource['id']}",
            highlight=False,
        )
        scores = check(client.get("/report", params={"calibration": resource["id"]})).json()
        print_scores(console, scores)


def upload_and_wait(
    client: httpx.Client,
    *,
    calibration: Path,
    model: Path | None = None,
    model_data: list[Path] | None = None,
    evaluation: Path | None = None,
    config: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Upload, show progress until the calibration ends, and return its resource.

    Raises
    ------
    CommandFailed
        If the upload is refused or the calibration does not succeed.
    """
    with ExitStack() as stack:
        paths = [("model", model)] if model else []
        paths += [("model_data", path) for path in model_data or []]
        paths += [("calibration", calibration)]
        paths += [("evaluation", evaluation)] if evaluation else []
        parts: list[tuple[str, Any]] = [
            (part, (path.name, stack.enter_context(path.open("rb")))) for part, path in paths
        ]
        parts.append(("config", (None, json.dumps(config or {}))))
        response = check(client.post("/calibrate", files=parts, timeout=None))
    resource: dict[str, Any] = response.json()
    try:
        resource = _follow(client, resource)
    except KeyboardInterrupt:
        client.post(f"/calibrations/{resource['id']}/cancel")
        raise
    for warning in resource["warnings"]:
        Console(stderr=True).print(
            f"warning: {warning}", style="yellow", markup=False, soft_wrap=True
        )
    if resource["status"] != "succeeded":
        error = resource["error"] or {"title": "Cancelled", "detail": "it was asked to stop"}
        raise CommandFailed(f"{error['title']}: {error['detail']}")
    return resource


def _follow(client: httpx.Client, resource: dict[str, Any]) -> dict[str, Any]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(resource["status"], total=None)
        while resource["status"] not in FINISHED:
            time.sleep(POLL_SECONDS)
            resource = check(client.get(f"/calibrations/{resource['id']}")).json()
            shown = resource["progress"]
            if shown is not None:
                progress.update(
                    task,
                    description=shown["stage"],
                    completed=shown["done"],
                    total=shown["total"] or None,
                )
    return resource


def _split(files: list[Path]) -> tuple[Path | None, Path]:
    if len(files) == 1:
        return None, files[0]
    if len(files) == 2:  # noqa: PLR2004 - a model and a set
        return files[0], files[1]
    raise typer.BadParameter("expected a model and a calibration set, or a set of outputs alone")


def _config(text: str | None, *, name: str | None, bins: str | None) -> dict[str, Any]:
    if text is not None and not text.lstrip().startswith("{"):
        try:
            text = Path(text).read_text(encoding="utf-8")
        except OSError as error:
            raise CommandFailed(f"--config: cannot read {text}: {error.strerror}") from error
    try:
        config: dict[str, Any] = json.loads(text or "{}")
    except ValueError as error:
        raise CommandFailed(f"--config is no JSON: {error}") from error
    if name is not None:
        config["name"] = name
    if bins is not None:
        config["bins"] = int(bins) if bins.isdigit() else bins
    return config
