"""``howsure demo``: the whole job on a small real example."""

import json
import logging
import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import httpx
import typer
from rich.console import Console

from service.cli.calibrate import upload_and_wait
from service.cli.connection import running
from service.cli.failure import CommandFailed, check
from service.cli.given_settings import given_settings, prepare
from service.cli.listener import bind
from service.cli.open_doors import require_keys
from service.cli.score_table import print_scores
from service.cli.upload import Upload
from service.client.connection import headers_of
from service.log_lines import configure_logging

PACKAGED = "demo_files"
IN_CHECKOUT = Path("examples") / "digits"


def demo(
    stay: Annotated[
        bool | None,
        typer.Option(
            "--stay/--no-stay",
            help="Keep serving until Ctrl-C; by default when run from a terminal.",
        ),
    ] = None,
) -> None:
    """Calibrate a digit classifier, predict with it, and print its scores and the address."""
    stay = sys.stdout.isatty() if stay is None else stay
    folder = demo_folder()
    settings = given_settings()
    prepare(settings)
    require_keys(settings)
    configure_logging(settings.log_format, level=logging.WARNING)
    try:
        listener = bind(settings.host, settings.port)
    except CommandFailed:
        listener = bind(settings.host, 0)
    address = f"http://{settings.host}:{listener.getsockname()[1]}"
    console = Console(highlight=False, soft_wrap=True)
    started = time.monotonic()
    with (
        running(settings, sockets=[listener]),
        httpx.Client(base_url=address, headers=headers_of(None)) as client,
    ):
        resource = upload_and_wait(
            client,
            Upload(
                onnx_models=[folder / "model.onnx"],
                calibration=folder / "calibration.npz",
                evaluation=folder / "evaluation.npz",
                config={"name": "digits"},
            ),
        )
        console.print(
            f"\nCalibrated [bold]digits@{resource['version']}[/bold]: "
            f"{resource['data']['samples']} labelled samples, "
            f"{time.monotonic() - started:.1f} s\n"
        )
        scores = client.get("/report", params={"calibration": resource["id"]})
        print_scores(console, check(scores).json())
        body = json.loads((folder / "request.json").read_text(encoding="utf-8"))
        answer = check(client.post("/predict", json=body)).json()
        for row, prediction in enumerate(answer["predictions"]):
            top1 = prediction["top1"]
            lower, upper = top1["interval"]
            console.print(
                f"row {row}: class {prediction['label']}, right with probability "
                f"{top1['probability']:.3f} ({lower:.3f} to {upper:.3f}); "
                f"the model's own softmax says {prediction['classes'][0]['score']:.3f}"
            )
        console.print(f"\nThe service answers on {address}; its documentation: {address}/docs")
        if stay:
            console.print("Press Ctrl-C to end it.")
            _wait_for_interrupt()


def demo_folder() -> Path:
    """Return the folder of the example: in the installed package, or in a checkout.

    Raises
    ------
    CommandFailed
        If neither holds it.
    """
    packaged = Path(str(files("service"))) / PACKAGED
    checkout = Path(str(files("service"))).parent / IN_CHECKOUT
    for folder in (packaged, checkout):
        if (folder / "model.onnx").is_file():
            return folder
    raise CommandFailed("the example's files are missing from this installation")


def _wait_for_interrupt() -> None:
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        return
