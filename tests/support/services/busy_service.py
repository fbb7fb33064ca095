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
from request_formats import Sent, in_json, infer
from runner_children import StartedChildren, wait_until
from runner_models import linear, rows
from running_service import calibrated, quick_config, scrape, service_on

NAME = "busy"
QUICK_ROWS = rows(2, seed=5)
PATHS = ("predict", "infer")


class BusyService:
    """Asks the model by ``/predict`` or the Open Inference Protocol, and waits in threads."""

    def __init__(
        self, client: httpx.Client, threads: ThreadPoolExecutor, started: StartedChildren
    ) -> None:
        self.client = client
        self._threads = threads
        self._started = started

    @contextmanager
    def held(self) -> Iterator[None]:
        """Stop the processes of models until the block ends: requests reach them and wait."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the processes of models, and wait for their end."""
        killed = set(self._started.pids())
        self._signal(signal.SIGKILL)
        # A spare child that is still ending could be given the next request.
        assert wait_until(lambda: not killed & set(self._started.pids()))

    def _signal(self, number: int) -> None:
        for pid in self._started.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def ask(
        self, inputs: Any = QUICK_ROWS, *, path: str = "predict", **headers: str
    ) -> httpx.Response:
        """Ask and wait."""
        if path == "infer":
            return infer(self.client, NAME, {"inputs": [in_json("x", inputs)]}, **headers)
        body = {"calibration": NAME, "inputs": inputs.tolist()}
        return self.client.post("/predict", json=body, headers=headers)

    def begin(self, inputs: Any = QUICK_ROWS, **options: str) -> "Future[httpx.Response]":
        """Ask and do not wait."""
        return self._threads.submit(lambda: self.ask(inputs, **options))

    def send(self, sent: Sent) -> "Future[httpx.Response]":
        """Send any request and do not wait."""
        return self._threads.submit(sent.by, self.client)

    @contextmanager
    def occupied(self) -> Iterator["Future[httpx.Response]"]:
        """Hold the model, with one request at it, until the block ends; it is answered then."""
        with self.held():
            asked = self.begin()
            self.wait_for(running=1, pending=0)
            yield asked
            assert not asked.done()
        assert asked.result().status_code == httpx.codes.OK

    def wait_for_answer(self) -> None:
        """Wait until the model is loaded; on a busy machine that may take longer than a timeout."""
        assert wait_until(lambda: self.ask().status_code == httpx.codes.OK)

    def wait_for(self, *, running: int, pending: int) -> None:
        """Wait until so many requests are at the model, and so many wait for it."""
        assert wait_until(lambda: self.state() == (running, pending)), self.state()

    def state(self) -> tuple[float, float]:
        """Return how many requests are at the model, and how many wait for it."""
        found, lane = scrape(self.client), {"lane": "predict"}
        return found("running_requests", **lane), found("pending_requests", **lane)


@contextmanager
def busy_service_on(folder: Path, **settings: Any) -> Iterator[BusyService]:
    """Run the service with the model loaded."""
    started = StartedChildren()
    with (
        service_on(folder, start_child=started.start_child, **settings) as client,
        ThreadPoolExecutor(64) as threads,
    ):
        calibrated(
            client,
            quick_config(name=NAME, top_k=[1, 5]),
            model=linear().SerializeToString(),
            calibration=inputs_set(),
        )
        service = BusyService(client, threads, started)
        service.wait_for_answer()
        yield service


def sentence_of(answer: httpx.Response) -> str:
    """Return what a failed request was told, by whichever interface."""
    found = answer.json()
    return found["error"] if "error" in found else found["detail"]
