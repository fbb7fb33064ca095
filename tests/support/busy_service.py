"""A running service whose model a test can hold: it answers nothing until it is released."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
from job_workspaces import inputs_set
from mixed_requests import Sent
from oip_service import in_json, infer
from runner_children import children, wait_until
from runner_models import endless_above, rows
from running_service import calibrate, service_on
from scraped import scrape

NAME = "busy"
HELD_ROWS = rows(1)
QUICK_ROWS = rows(2, seed=5)
PATHS = ("predict", "infer")


class BusyService:
    """Asks the model by ``/predict`` or the Open Inference Protocol, and waits in threads.

    ``others`` are the runner's children that belong to somebody else.
    """

    def __init__(
        self, client: httpx.Client, threads: ThreadPoolExecutor, others: list[int]
    ) -> None:
        self.client = client
        self._threads = threads
        self._others = set(others)

    def hold(self) -> None:
        """Stop the processes of models; requests reach them and are not answered."""
        self._signal(signal.SIGSTOP)

    def release(self) -> None:
        """Let them go on."""
        self._signal(signal.SIGCONT)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the model until the block ends."""
        self.hold()
        try:
            yield
        finally:
            self.release()

    def _signal(self, number: int) -> None:
        for pid in set(children()) - self._others:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

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

    @contextmanager
    def occupied(self) -> Iterator["Future[httpx.Response]"]:
        """Hold the model, with one request at it, until the block ends; it is answered then."""
        with self.held():
            asked = self.begin(HELD_ROWS)
            self.wait_for(running=1, pending=0)
            yield asked
            assert not asked.done()
        assert asked.result().status_code == httpx.codes.OK

    def wait_for(self, *, running: int, pending: int) -> None:
        """Wait until so many requests are at the model, and so many wait for it."""
        assert wait_until(lambda: self.state() == (running, pending)), self.state()

    def state(self) -> tuple[float, float]:
        """Return how many requests are at the model, and how many wait for it."""
        found, lane = scrape(self.client), {"lane": "predict"}
        return found("running_requests", **lane), found("pending_requests", **lane)


@contextmanager
def busy_service_on(folder: Path, *, turns: int = 0, **settings: Any) -> Iterator[BusyService]:
    """Run the service with the model loaded; rows of large numbers run ``turns`` of a loop."""
    others = children()
    with service_on(folder, **settings) as client, ThreadPoolExecutor(64) as threads:
        made = calibrate(
            client,
            model=endless_above(1000.0, turns=turns).SerializeToString(),
            calibration=inputs_set(),
            config=f'{{"name": "{NAME}", "bins": 5, "folds": 2, "measures": ["margin"]}}',
        )
        assert made.json()["status"] == "succeeded", made.text
        service = BusyService(client, threads, others)
        assert service.ask(QUICK_ROWS).status_code == httpx.codes.OK
        yield service


def sentence_of(answer: httpx.Response) -> str:
    """Return what a failed request was told, by whichever interface."""
    found = answer.json()
    return found["error"] if "error" in found else found["detail"]
