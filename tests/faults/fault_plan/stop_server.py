"""SIGTERM and SIGINT to the serving process: idle, under load, during a job, during an upload."""

import json
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
from runner_children import wait_until

from fault_plan.figures import Figures
from fault_plan.site import Site
from fault_plan.traffic import KnownAnswers, Traffic, unfinished
from fault_plan.uploads import Upload, mixed_uploads
from service.cli.server import can_refuse_new

WAIT_SECONDS = 60.0
LOADING_CLIENTS = 4
PAUSE_SECONDS = 0.5
# Four stops have each state and each signal, eight all pairs.
SIGNALS = (signal.SIGTERM, signal.SIGINT)
STATES = ("idle", "load", "job", "upload")


def stop_server(folder: Path, *, times: int = 50, seed: int, copies: int = 20) -> Figures:
    """Stop it ``times`` times, by turns with each signal in each state, and start it again.

    Each stop ends with status 0, without a traceback and after an answer to every request that the
    server accepted. Without socket filters a connection may be reset while the server closes.
    """
    figures, generator = Figures("stop-server", seed), random.Random(seed)
    site, upload = Site(folder, workers="1"), mixed_uploads(copies)[0]
    with site.serving() as client:
        upload.send(client, "known", wait=60).raise_for_status()
        steps = [AnsweredUntilRefused(client) for _ in range(LOADING_CLIENTS)]

    def count_answers() -> int:
        return sum(step.statuses.total() for step in steps)

    for stop in range(times):
        state, number = STATES[stop % 4], SIGNALS[(stop + stop // 4) % 2]
        process, before = site.serve(), count_answers()
        with site.client() as client, Traffic(site, figures, steps if state == "load" else []):
            sending = _bring_about(state, client, upload, f"job-{stop}", figures)
            if state == "load":
                wait_until(lambda before=before: count_answers() > before, seconds=WAIT_SECONDS)
            time.sleep(generator.uniform(0.05, 0.3))
            began = time.monotonic()
            process.send_signal(number)
            if (code := process.wait(WAIT_SECONDS)) != 0:
                figures.violations.append(f"{state}, {number.name}: it ended with {code}")
            figures.recovery_seconds.append(time.monotonic() - began)
            sending.join()
        figures.strike([f"{state}, {number.name}"])
    figures.more["predictions"] = count_answers()
    figures.more["reset_at_the_end"] = sum(step.resets for step in steps)
    if can_refuse_new() and figures.more["reset_at_the_end"]:
        figures.violations.append("connections were reset, though the kernel has socket filters")
    if "Traceback" in site.log.read_text():
        figures.violations.append("there is a traceback in the log")
    return figures


class AnsweredUntilRefused(KnownAnswers):
    """Asks on a new connection each time; once it is accepted, the request must be answered."""

    def __init__(self, client: httpx.Client) -> None:
        super().__init__(client, "known")
        self.resets = 0

    def __call__(self, client: httpx.Client) -> None:
        """Ask once; only the connection may fail."""
        with httpx.Client(base_url=client.base_url, timeout=client.timeout) as own:
            try:
                super().__call__(own)
            except httpx.ConnectError:
                raise
            except httpx.TransportError:
                self.resets += 1
                raise


def _bring_about(
    state: str, client: httpx.Client, upload: Upload, name: str, figures: Figures
) -> threading.Thread:
    """Return a thread that ends with what it sends."""
    sending = threading.Thread(target=lambda: None)
    if state == "job":
        upload.send(client, name).raise_for_status()
        wait_until(lambda: unfinished(client), seconds=WAIT_SECONDS)
    elif state == "upload":
        sending = threading.Thread(target=_send_slowly, args=(client, upload, name, figures))
    sending.start()
    return sending


def _send_slowly(client: httpx.Client, upload: Upload, name: str, figures: Figures) -> None:
    """Send an upload in two halves; the server stops while it waits for the second."""
    files = {"calibration": ("set", upload.calibration)}
    if upload.model is not None:
        files["model"] = ("model", upload.model)
    config = {"config": json.dumps({"name": name, **upload.config})}
    request = client.build_request("POST", "/calibrate", files=files, data=config)
    body = request.read()

    def content() -> Iterator[bytes]:
        yield body[: len(body) // 2]
        time.sleep(PAUSE_SECONDS)
        yield body[len(body) // 2 :]

    try:
        answer = client.post("/calibrate", content=content(), headers=request.headers)
    except httpx.TransportError as error:
        figures.violations.append(f"an upload was not answered: {error!r}")
    else:
        if answer.status_code != httpx.codes.ACCEPTED:
            figures.violations.append(f"an upload was answered {answer.status_code}: {answer.text}")
