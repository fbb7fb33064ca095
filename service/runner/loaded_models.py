"""ONNX models that stay loaded, one in each child process."""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

from service.errors import OnnxModelCrashed, Overloaded
from service.runner.messages.frames import Array, Frame
from service.runner.messages.onnx_models import LoadedOnnxModel
from service.runner.process import RunnerProcess
from service.runner.questions import Question, ask
from service.runner.slots import CLOSED, Patience, Slot, Slots
from service.runner.spawner import Spawner

MODEL_BUSY = "The ONNX model is busy with other requests."

T = TypeVar("T")
# Told of each answer: what was asked, of how many rows, and the seconds it took.
Answered: TypeAlias = Callable[[str, int, float], None]


class KeptModels:
    """Loads models into children and keeps them, the most recently used ``size`` of them."""

    def __init__(
        self, spawner: Spawner, *, size: int, queue_timeout: float, answered: Answered
    ) -> None:
        self._spawner = spawner
        self._answered = answered
        self._slots = Slots(size)
        self._queue_timeout = queue_timeout

    def close(self) -> None:
        """Kill all children; who waits for one gets `Overloaded`."""
        self._slots.close()

    def count_loaded(self) -> int:
        """Return how many models are loaded."""
        return self._slots.count_loaded()

    def patience(self) -> Patience:
        """Return the patience of a request."""
        return Patience(self._queue_timeout)

    @contextmanager
    def hold(self, key: Hashable, patience: Patience) -> Iterator[Slot]:
        """Keep the place of a model while the block runs.

        Raises
        ------
        Overloaded
            If none becomes free in time, or the pool is closed.
        """
        with self._slots.hold(key, patience) as slot:
            yield slot

    def load_new(
        self,
        question: Question,
        key_of: Callable[[LoadedOnnxModel], Hashable],
        check: Callable[[LoadedOnnxModel], None],
    ) -> LoadedOnnxModel:
        """Load a model whose key shows only when it is loaded, and keep it under that.

        ``check`` raises `FieldError` where a child found what cannot be.

        Raises
        ------
        ServiceError
            Whatever came in the way.
        """
        with self.hold(object(), self.patience()) as slot, slot.lock:
            loaded = self._load(slot, question, check)
            if not self._slots.rename(slot, key_of(loaded)):
                slot.drop()  # it is kept already
            return loaded

    def ask_once(self, question: Question, read: Callable[[Mapping[str, Array]], T]) -> T:
        """Ask a child that is let go after its answer.

        Raises
        ------
        ServiceError
            Whatever came in the way.
        """
        with self.hold(object(), self.patience()) as slot, slot.lock:
            slot.process = self._spawner.take()
            try:
                return self._ask(slot, question, lambda answer: read(answer.tensors))
            finally:
                slot.drop()

    def ask(
        self,
        slot: Slot,
        loading: Callable[[], Question],
        question: Question,
        read: Callable[[Mapping[str, Array]], T],
        patience: Patience,
    ) -> T:
        """Ask the slot's child, which is given the model first if it does not have it.

        Raises
        ------
        ServiceError
            Whatever came in the way.
        """
        with self._locked(slot, patience):
            if slot.process is None or not slot.process.is_alive():
                self._load(slot, loading(), lambda _: None)
            return self._ask(slot, question, lambda answer: read(answer.tensors))

    def _load(
        self, slot: Slot, question: Question, check: Callable[[LoadedOnnxModel], None]
    ) -> LoadedOnnxModel:
        def read(answer: Frame) -> LoadedOnnxModel:
            loaded = LoadedOnnxModel.from_fields(answer.fields)
            check(loaded)
            return loaded

        slot.drop()
        slot.process = self._spawner.take()
        try:
            return self._ask(slot, question, read)
        except BaseException:
            slot.drop()
            raise

    def _ask(self, slot: Slot, question: Question, read: Callable[[Frame], T]) -> T:
        process = slot.process
        if process is None or self._slots.is_closed:
            # Either this thread sees that the pool is closed, or `close` sees the process.
            slot.drop()
            raise Overloaded(CLOSED)
        try:
            return self._timed(process, question, read)
        except OnnxModelCrashed as error:
            if self._slots.is_closed:
                raise Overloaded(CLOSED) from error
            raise
        finally:
            if not process.is_alive():
                slot.drop()

    def _timed(self, process: RunnerProcess, question: Question, read: Callable[[Frame], T]) -> T:
        started = time.perf_counter()
        answer = ask(process, question, read)
        self._answered(question.operation, question.n_rows, time.perf_counter() - started)
        return answer

    @contextmanager
    def _locked(self, slot: Slot, patience: Patience) -> Iterator[None]:
        while not slot.lock.acquire(timeout=patience.beat()):
            patience.go_on(MODEL_BUSY)
        try:
            yield
        finally:
            slot.lock.release()
