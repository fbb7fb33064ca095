"""Models that stay loaded, one in each child process: the least recently used gives way first."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

from service.errors import OnnxModelCrashed, Overloaded
from service.runner.child_requests import ChildRequest, ask
from service.runner.messages.onnx_models import LoadedOnnxModel
from service.runner.process import RunnerProcess
from service.runner.spawner import CLOSED, Spawner

CHECK_SECONDS = 0.5
ALL_BUSY = "Every process that runs ONNX models is busy with another one."
MODEL_BUSY = "The ONNX model is busy with other requests."

T = TypeVar("T")
# Receives the operation of each answer, its number of rows, and the seconds it took.
Answered: TypeAlias = Callable[[str, int, float], None]


class Deadline:
    """The end of a caller's waiting.

    While the caller waits, ``check`` is called at short intervals and may raise; no lock is held.
    """

    def __init__(
        self,
        seconds: float,
        check: Callable[[], None] = lambda: None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._check = check

    def interval(self) -> float:
        """Return the seconds to wait until the next check; 0 after the deadline."""
        return min(max(self._end - self._clock(), 0.0), CHECK_SECONDS)

    def check(self, reason: str) -> None:
        """Decide after an interval whether to go on waiting.

        Raises
        ------
        Overloaded
            With this reason, after the deadline.
        """
        self._check()
        if self._clock() >= self._end:
            raise Overloaded(reason)


class Slot:
    """A child process with one model. ``process`` is None until the model is loaded."""

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.process: RunnerProcess | None = None
        self.users = 0
        self.is_busy = False

    def drop(self) -> None:
        """Kill the child process, if there is one."""
        process, self.process = self.process, None
        if process is not None:
            process.close()


class LoadedModels:
    """A fixed number of slots by key, least recently used first; safe to use from many threads."""

    def __init__(
        self, spawner: Spawner, *, size: int, answered: Answered = lambda *_: None
    ) -> None:
        self._spawner = spawner
        self._size = size
        self._answered = answered
        self._changed = threading.Condition()
        self._slots: OrderedDict[Hashable, Slot] = OrderedDict()
        self._closed = False

    def close(self) -> None:
        """Kill all children; callers that wait get `Overloaded`."""
        with self._changed:
            self._closed = True
            slots = list(self._slots.values())
            self._changed.notify_all()
        # Kill all first: the threads that wait for an answer then release their slots.
        for process in [slot.process for slot in slots]:
            if process is not None:
                process.kill()
        for slot in slots:
            slot.drop()

    def count_loaded(self) -> int:
        """Return the number of loaded models."""
        with self._changed:
            return sum(slot.process is not None for slot in self._slots.values())

    @contextmanager
    def hold(self, key: Hashable, deadline: Deadline) -> Iterator[Slot]:
        """Keep the slot of ``key`` from being evicted while the block runs.

        Raises
        ------
        Overloaded
            If all slots are in use until the deadline, or the pool is closed.
        """
        slot, evicted = self._wait(lambda: self._try_enter(key), deadline, ALL_BUSY)
        try:
            if evicted is not None:
                evicted.drop()
            yield slot
        finally:
            self._leave(slot)

    def ask(
        self,
        slot: Slot,
        load: Callable[[], ChildRequest[LoadedOnnxModel]],
        request: ChildRequest[T],
        deadline: Deadline,
    ) -> T:
        """Ask the slot's child, which loads the model first if it is not loaded.

        Raises
        ------
        ServiceError
            If the caller has to wait until the deadline, or the child fails.
        """
        with self._alone(slot, deadline):
            if slot.process is None or not slot.process.is_alive():
                self._load(slot, load())
            return self._ask(slot, request)

    def load_new(
        self,
        request: ChildRequest[LoadedOnnxModel],
        key_of: Callable[[LoadedOnnxModel], Hashable],
        deadline: Deadline,
    ) -> LoadedOnnxModel:
        """Load a model whose key is known only once it is loaded, and keep it.

        Raises
        ------
        ServiceError
            If the caller has to wait until the deadline, or the child fails.
        """
        with self.hold(object(), deadline) as slot:
            loaded = self._load(slot, request)
            if not self._rename(slot, key_of(loaded)):
                slot.drop()  # another slot has this model
            return loaded

    def ask_once(self, request: ChildRequest[T], deadline: Deadline) -> T:
        """Ask a child that is closed after its answer.

        Raises
        ------
        ServiceError
            If the caller has to wait until the deadline, or the child fails.
        """
        with self.hold(object(), deadline) as slot:
            return self._load(slot, request, keep=False)

    def _wait(self, attempt: Callable[[], T | None], deadline: Deadline, reason: str) -> T:
        """Return the result of an attempt, which is repeated after each change."""
        while True:
            with self._changed:
                found = attempt()
                if found is None:
                    self._changed.wait(deadline.interval())
                    found = attempt()
            if found is not None:
                return found
            deadline.check(reason)

    def _try_enter(self, key: Hashable) -> tuple[Slot, Slot | None] | None:
        """Return the slot of ``key`` and the evicted one; None while all are in use."""
        if self._closed:
            raise Overloaded(CLOSED)
        evicted = None
        if key not in self._slots and len(self._slots) >= self._size:
            evicted = next((slot for slot in self._slots.values() if not slot.users), None)
            if evicted is None:
                return None
            del self._slots[evicted.key]
        slot = self._slots.setdefault(key, Slot(key))
        self._slots.move_to_end(key)
        slot.users += 1
        return slot, evicted

    def _leave(self, slot: Slot) -> None:
        with self._changed:
            slot.users -= 1
            if not slot.users and slot.process is None and self._slots.get(slot.key) is slot:
                del self._slots[slot.key]
            # Wake all: several callers may want the model that the next one loads.
            self._changed.notify_all()

    @contextmanager
    def _alone(self, slot: Slot, deadline: Deadline) -> Iterator[None]:
        """Wait until no other thread talks to the slot's child, and keep others waiting."""

        def occupy() -> Slot | None:
            if slot.is_busy:
                return None
            slot.is_busy = True
            return slot

        self._wait(occupy, deadline, MODEL_BUSY)
        try:
            yield
        finally:
            with self._changed:
                slot.is_busy = False
                self._changed.notify_all()

    def _rename(self, slot: Slot, key: Hashable) -> bool:
        """Give a held slot another key unless that key is taken; return whether it was free."""
        with self._changed:
            if key in self._slots or self._slots.get(slot.key) is not slot:
                return False
            del self._slots[slot.key]
            slot.key = key
            self._slots[key] = slot
            self._changed.notify_all()
            return True

    def _load(self, slot: Slot, request: ChildRequest[T], *, keep: bool = True) -> T:
        """Send the first request to a new child, which is closed after a failure."""
        slot.drop()
        slot.process = self._spawner.take()
        try:
            return self._ask(slot, request)
        except BaseException:
            keep = False
            raise
        finally:
            if not keep:
                slot.drop()

    def _ask(self, slot: Slot, request: ChildRequest[T]) -> T:
        process = slot.process
        if process is None or self._closed:
            # Either this thread sees that the pool is closed, or `close` sees the process.
            slot.drop()
            raise Overloaded(CLOSED)
        started = time.perf_counter()
        try:
            result = ask(process, request)
        except OnnxModelCrashed as error:
            if self._closed:
                raise Overloaded(CLOSED) from error
            raise
        finally:
            if not process.is_alive():
                slot.drop()
        self._answered(request.operation, request.n_rows, time.perf_counter() - started)
        return result
