"""``howsure demo``: the whole procedure on a small real example."""

import json
import logging
import sys
import threading
import time
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from howsure.client.request import json_request
from service.cli.connection import ServiceClient, running
from service.cli.console import job_progress
from service.cli.failure import CommandFailed
from service.cli.local import load_settings, prepare, require_sandbox
from service.cli.report import print_scores
from service.cli.serve import require_api_key
from service.cli.server import address_of, bind
from service.cli.stopping import until_stopped

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
    console = Console(highlight=False, soft_wrap=True)
    with until_stopped():
        _run_demo(console, stay=sys.stdout.isatty() if stay is None else stay)
        return
    console.print("\nThe demo has stopped.")


def _run_demo(console: Console, *, stay: bool) -> None:
    from service.startup import configure_logging

    folder = demo_folder()
    settings = load_settings()
    require_sandbox(settings)
    prepare(settings)
    require_api_key(settings)
    configure_logging(settings.log_format, level=logging.WARNING)
    try:
        listener = bind(settings.host, settings.port)
    except CommandFailed:
        listener = bind(settings.host, 0)
    address = address_of(listener, settings.host)
    started = time.monotonic()
    with running(settings, sockets=[listener]), ServiceClient(address) as client:
        with job_progress() as show:
            made = client.calibrate(
                folder / "model.onnx",
                folder / "calibration.npz",
                evaluation=folder / "evaluation.npz",
                name="digits",
                on_progress=show,
                cancel_on_interrupt=True,
            )
        console.print(
            f"\nCalibrated [bold]{made.reference}[/bold]: "
            f"{made.resource['data']['samples']} labelled samples, "
            f"{time.monotonic() - started:.1f} s\n"
        )
        print_scores(client.report(made))
        body = json.loads((folder / "request.json").read_text(encoding="utf-8"))
        answer = client.send(json_request("/predict", body, headers={})).json()
        for row, prediction in enumerate(answer["predictions"]):
            top1 = prediction["top1"]
            lower, upper = top1["interval"]
            console.print(
                f"row {row}: class {prediction['label']}, correct with probability "
                f"{top1['probability']:.3f} ({lower:.3f} to {upper:.3f}); "
                f"the model's own softmax says {prediction['classes'][0]['score']:.3f}"
            )
        console.print(f"\nThe service answers on {address}; its documentation: {address}/docs")
        if stay:
            console.print("Press Ctrl-C to stop it.")
            threading.Event().wait()


def demo_folder() -> Path:
    """Return the folder of the example: in the installed package, or in a checkout.

    Raises
    ------
    CommandFailed
        If neither contains it.
    """
    packaged = Path(str(files("service"))) / PACKAGED
    checkout = Path(str(files("service"))).parent / IN_CHECKOUT
    for folder in (packaged, checkout):
        if (folder / "model.onnx").is_file():
            return folder
    raise CommandFailed("the example's files are missing from this installation")
