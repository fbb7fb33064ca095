"""Loads models for predictions, in threads."""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path

from howsure.events import HeadOutputs
from service.errors import Overloaded
from service.runner.child_requests import ChildRequests, ask
from service.runner.devices import Placement
from service.runner.messages.frames import Array, FrameError
from service.runner.messages.onnx_models import LoadedOnnxModel, NoFiles
from service.runner.model_to_serve import ModelToServe, ProviderParity
from service.runner.process import RunnerProcess
from service.runner.spawner import CLOSED, Spawner

OPENING_THREADS = 4
CLOSING_THREADS = 2
READING_THREADS = 2
CPU = "cpu"


@dataclass(frozen=True)
class OpenedModel:
    """A child that has loaded a model."""

    process: RunnerProcess
    found: LoadedOnnxModel
    device: str
    memory_bytes: int
    parity: ProviderParity


@dataclass(eq=False, repr=False)
class ModelOpener:
    """Opens models on one event loop.

    Attributes
    ----------
    placement
        The devices of the models.
    closing, reading
        Threads that wait for children to end, and that read their large answers.
    """

    spawner: Spawner
    requests: ChildRequests
    _: KW_ONLY
    placement: Placement
    answered: Callable[[str, int, float], None]

    def __post_init__(self) -> None:
        self.closing = ThreadPoolExecutor(CLOSING_THREADS, thread_name_prefix="model-closing")
        self.reading = ThreadPoolExecutor(READING_THREADS, thread_name_prefix="model-answers")
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(OPENING_THREADS, thread_name_prefix="model-opening")
        self._openings: set[asyncio.Future[OpenedModel]] = set()
        self._loading: set[RunnerProcess] = set()
        self._closed = False

    def count(self) -> int:
        """Return the number of models that are being opened."""
        return len(self._openings)

    def open(self, model: ModelToServe) -> "asyncio.Future[OpenedModel]":
        """Load a model in a child and rehearse it."""
        opening = self._loop.run_in_executor(self._threads, self._open, model)
        self._openings.add(opening)
        opening.add_done_callback(self._openings.discard)
        return opening

    async def close(self) -> None:
        """Kill the children that load models, and wait until all children are closed."""
        self._closed = True
        for process in list(self._loading):
            process.kill()
        if self._openings:
            await asyncio.wait(self._openings)
        for threads in (self._threads, self.closing, self.reading):
            await asyncio.to_thread(threads.shutdown)

    def _open(self, model: ModelToServe) -> OpenedModel:
        started = time.perf_counter()
        device = CPU
        if not isinstance(model.files, NoFiles):
            device = self.placement.place(model.key, 0).name
        process = self.spawner.take()
        self._loading.add(process)
        try:
            opened = self._loaded(model, process, device)
        except BaseException:
            process.close()
            raise
        finally:
            self._loading.discard(process)
        self.answered("load", 0, time.perf_counter() - started)
        return opened

    def _loaded(self, model: ModelToServe, process: RunnerProcess, device: str) -> OpenedModel:
        if self._closed:
            raise Overloaded(CLOSED)
        if isinstance(model.files, NoFiles):
            request = self.requests.load_scores(model.resolved)
        else:
            request = self.requests.load(model.files, model.resolved, device=device)
        found = ask(process, request)
        parity = model.rehearse(partial(self._run_rows, model, process), found.provider)
        try:
            process.detach_socket()
        except FrameError as error:
            raise process.kill_for_protocol_error(str(error)) from error
        return OpenedModel(process, found, device, process_memory(process.pid), parity)

    def _run_rows(
        self, model: ModelToServe, process: RunnerProcess, inputs: Mapping[str, Array]
    ) -> HeadOutputs:
        request = self.requests.predict(inputs, model.spec, start=0, location="calibration")
        return ask(process, request).outputs


def process_memory(pid: int) -> int:
    """Return the process's share of the machine's memory in bytes; 0 if it is not known."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0
