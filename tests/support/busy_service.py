"""A running service with a model that some rows keep busy for seconds, and some never do."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from job_workspaces import TOO_LARGE, inputs_set
from mixed_requests import Sent
from oip_service import in_json, infer
from runner_children import wait_until
from runner_models import endless_above, rows
from running_service import calibrate, service_on
from scraped import scrape

NAME = "busy"
# A few seconds of turns.
TURNS = 2_000_000
BUSY_ROWS = rows(1) + TOO_LARGE
QUICK_ROWS = rows(2, seed=5)
PATHS = ("predict", "infer")


class BusyService:
    """Asks the model by ``/predict`` or the Open Inference Protocol, and waits in threads."""

    def __init__(self, client: httpx.Client, threads: ThreadPoolExecutor) -> None:
        self.client = client
        self._threads = threads

    def ask(self, inputs: Any, *, path: str = "predict", **headers: str) -> httpx.Response:
        """Ask and wait."""
        if path == "infer":
            return infer(self.client, NAME, {"inputs": [in_json("x", inputs)]}, **headers)
        body = {"calibration": NAME, "inputs": inputs.tolist()}
        return self.client.post("/predict", json=body, headers=headers)

    def begin(self, inputs: Any, **options: str) -> "Future[httpx.Response]":
        """Ask and do not wait."""
        return self._threads.submit(lambda: self.ask(inputs, **options))

    def send(self, sent: Sent) -> "Future[httpx.Response]":
        """Send any request and do not wait."""
        return self._threads.submit(sent.by, self.client)

    def occupy(self) -> "Future[httpx.Response]":
        """Keep the model busy; return once it is."""
        asked = self.begin(BUSY_ROWS)
        self.wait_for(running=1, pending=0)
        return asked

    def wait_for(self, *, running: int, pending: int) -> None:
        """Wait until so many requests are at the model, and so many wait for it."""
        assert wait_until(lambda: self.state() == (running, pending)), self.state()

    def state(self) -> tuple[float, float]:
        """Return how many requests are at the model, and how many wait for it."""
        found, lane = scrape(self.client), {"lane": "predict"}
        return found("running_requests", **lane), found("pending_requests", **lane)


@contextmanager
def busy_service_on(folder: Path, *, turns: int = TURNS, **settings: Any) -> Iterator[BusyService]:
    """Run the service with the model loaded."""
    with service_on(folder, **settings) as client, ThreadPoolExecutor(64) as threads:
        made = calibrate(
            client,
            model=endless_above(1000.0, turns=turns).SerializeToString(),
            calibration=inputs_set(),
            config=f'{{"name": "{NAME}", "bins": 5}}',
        )
        assert made.json()["status"] == "succeeded", made.text
        service = BusyService(client, threads)
        assert service.ask(QUICK_ROWS).status_code == httpx.codes.OK
        yield service


def sentence_of(answer: httpx.Response) -> str:
    """Return what a failed request was told, by whichever interface."""
    found = answer.json()
    return found["error"] if "error" in found else found["detail"]
