"""Loads models that are to answer predictions, in threads: a load may take its time."""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from service.errors import Overloaded
from service.runner.devices import LatePlacement
from service.runner.messages.frames import Array, FrameError
from service.runner.messages.onnx_models import HeadOutputs, LoadedOnnxModel, NoFiles
from service.runner.model_to_serve import ModelToServe, ProviderParity
from service.runner.process import RunnerProcess, process_memory
from service.runner.questions import Questions, ask
from service.runner.slots import CLOSED
from service.runner.spawner import Spawner

OPENING_THREADS = 4
CLOSING_THREADS = 2
CPU = "cpu"


@dataclass(frozen=True)
class OpenedModel:
    """A child that has loaded a model."""

    process: RunnerProcess
    found: LoadedOnnxModel
    device: str
    memory_bytes: int
    parity: ProviderParity


class ModelOpener:
    """Opens models on one event loop.

    Attributes
    ----------
    placement
        On which devices models are.
    closing
        Threads that wait for the end of children. No load keeps them: what became of a child is
        told also while others load.
    """

    def __init__(
        self,
        spawner: Spawner,
        questions: Questions,
        *,
        placement: LatePlacement,
        answered: Callable[[str, int, float], None],
    ) -> None:
        self.placement = placement
        self.closing = ThreadPoolExecutor(CLOSING_THREADS, thread_name_prefix="model-closing")
        self._spawner = spawner
        self._questions = questions
        self._answered = answered
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(OPENING_THREADS, thread_name_prefix="model-opening")
        self._openings: set[asyncio.Future[OpenedModel]] = set()
        self._loading: set[RunnerProcess] = set()
        self._closed = False

    def count(self) -> int:
        """Return how many models are being opened."""
        return len(self._openings)

    def open(self, model: ModelToServe) -> "asyncio.Future[OpenedModel]":
        """Load a model in a child and run its rehearsal."""
        opening = self._loop.run_in_executor(self._threads, self._open, model)
        self._openings.add(opening)
        opening.add_done_callback(self._openings.discard)
        return opening

    async def close(self) -> None:
        """Break off what is being opened, and wait until all that was to be closed is."""
        self._closed = True
        for process in list(self._loading):
            process.kill()
        if self._openings:
            await asyncio.wait(self._openings)
        await asyncio.to_thread(self._threads.shutdown)
        await asyncio.to_thread(self.closing.shutdown)

    def _open(self, model: ModelToServe) -> OpenedModel:
        started = time.perf_counter()
        device = CPU
        if not isinstance(model.files, NoFiles):
            device = self.placement.place(model.key, 0).name
        process = self._spawner.take()
        self._loading.add(process)
        try:
            opened = self._loaded(model, process, device)
        except BaseException:
            process.close()
            raise
        finally:
            self._loading.discard(process)
        self._answered("load", 0, time.perf_counter() - started)
        return opened

    def _loaded(self, model: ModelToServe, process: RunnerProcess, device: str) -> OpenedModel:
        if self._closed:
            raise Overloaded(CLOSED)
        if isinstance(model.files, NoFiles):
            question = self._questions.load_scores(model.resolved)
        else:
            question = self._questions.load(model.files, model.resolved, device=device)
        found = ask(process, question, lambda answer: LoadedOnnxModel.from_fields(answer.fields))
        parity = model.rehearse(partial(self._run_rows, model, process), found.provider)
        try:
            process.lend()
        except FrameError as error:
            raise process.condemn(str(error)) from error
        return OpenedModel(process, found, device, process_memory(process.pid), parity)

    def _run_rows(
        self, model: ModelToServe, process: RunnerProcess, inputs: Mapping[str, Array]
    ) -> HeadOutputs:
        n_rows = len(next(iter(inputs.values())))
        question = self._questions.predict(inputs, model.expected, start=0, location="calibration")
        return ask(
            process, question, lambda answer: model.expected.head_outputs(answer.tensors, n_rows)
        )
