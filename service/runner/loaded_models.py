"""Models that stay loaded, one in each child process: the least recently used gives way first."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import TypeAlias, TypeVar

from service.errors import OnnxModelCrashed, Overloaded
from service.runner.child_requests import ChildRequest, ask
from service.runner.messages.onnx_models import LoadedOnnxModel
from service.runner.process import RunnerProcess
from service.runner.spawner import CLOSED, Spawner

CHECK_SECONDS = 0.5
MODEL_BUSY = "The ONNX model is busy with other requests."
ALL_BUSY = "Every process that runs ONNX models is busy with another one."

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


class Child:
    """A place for one model.

    ``key`` is that of the model it is reserved for, ``loaded`` of the one that its process holds.
    """

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.loaded: Hashable = None
        self.process: RunnerProcess | None = None

    def drop(self) -> None:
        """Kill the process, if there is one."""
        process, self.process = self.process, None
        if process is not None:
            process.close()


class LoadedModels:
    """A fixed number of children, each for one caller at a time, in the order in which they ask.

    A child that nobody uses keeps its model until its place is needed.
    """

    def __init__(
        self, spawner: Spawner, *, size: int, answered: Answered = lambda *_: None
    ) -> None:
        self._spawner = spawner
        self._size = size
        self._answered = answered
        self._changed = threading.Condition()
        # The keys that callers wait for, each in a list of its own.
        self._waiting: list[list[Hashable]] = []
        self._used: set[Child] = set()
        # The least recently used first.
        self._unused: list[Child] = []
        self._closed = False

    def close(self) -> None:
        """Kill all children; callers that wait get `Overloaded`."""
        with self._changed:
            self._closed = True
            children = [*self._used, *self._unused]
            self._changed.notify_all()
        # Kill all first: the threads that wait for an answer then release their children.
        for process in [child.process for child in children]:
            if process is not None:
                process.kill()
        for child in children:
            child.drop()

    def count_loaded(self) -> int:
        """Return the number of loaded models."""
        with self._changed:
            return sum(child.process is not None for child in (*self._used, *self._unused))

    @contextmanager
    def child(self, key: Hashable, deadline: Deadline) -> Iterator[Child]:
        """Reserve a child for the block: one that holds the model of ``key`` if one is free.

        Raises
        ------
        Overloaded
            If none is free until the deadline, or the pool is closed.
        """
        child = self._wait_for_child(key, deadline)
        try:
            yield child
        finally:
            with self._changed:
                self._used.discard(child)
                if child.process is not None:
                    self._unused.append(child)
                self._changed.notify_all()

    def ask(
        self,
        child: Child,
        load: Callable[[], ChildRequest[LoadedOnnxModel]],
        request: ChildRequest[T],
    ) -> T:
        """Ask a reserved child, which loads the model first if it is not loaded.

        Raises
        ------
        ServiceError
            If the child fails.
        """
        if child.loaded != child.key or child.process is None or not child.process.is_alive():
            self._load(child, load())
        return self._ask(child, request)

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
        with self.child(object(), deadline) as child:
            loaded = self._load(child, request)
            child.key = child.loaded = key_of(loaded)
            return loaded

    def ask_once(self, request: ChildRequest[T], deadline: Deadline) -> T:
        """Ask a child that is closed after its answer.

        Raises
        ------
        ServiceError
            If the caller has to wait until the deadline, or the child fails.
        """
        with self.child(object(), deadline) as child:
            try:
                return self._load(child, request)
            finally:
                child.drop()

    def _wait_for_child(self, key: Hashable, deadline: Deadline) -> Child:
        turn = [key]
        with self._changed:
            self._waiting.append(turn)
        try:
            while True:
                with self._changed:
                    if self._closed:
                        raise Overloaded(CLOSED)
                    used = {child.key for child in self._used}
                    child = self._free_child(turn, used)
                    if child is not None:
                        child.key = key
                        self._used.add(child)
                        return child
                    self._changed.wait(deadline.interval())
                deadline.check(MODEL_BUSY if key in used else ALL_BUSY)
        finally:
            with self._changed:
                self._waiting = [one for one in self._waiting if one is not turn]
                self._changed.notify_all()

    def _free_child(self, turn: list[Hashable], used: set[Hashable]) -> Child | None:
        """Return an unused child with the model, a new one, or the least recently used one.

        Return None while the model's child is used, and while an earlier caller waits for it or for
        any place.
        """
        (key,) = turn
        earlier = [other for (other,) in takewhile(lambda one: one is not turn, self._waiting)]
        if key in used or key in earlier or not used.issuperset(earlier):
            return None
        place = next((i for i, child in enumerate(self._unused) if child.key == key), None)
        if place is None and len(self._used) + len(self._unused) < self._size:
            return Child(key)
        return self._unused.pop(place or 0) if self._unused else None

    def _load(self, child: Child, request: ChildRequest[T]) -> T:
        """Send the first request to a new process, which is closed after a failure."""
        child.drop()
        child.process, child.loaded = self._spawner.take(), child.key
        try:
            return self._ask(child, request)
        except BaseException:
            child.drop()
            raise

    def _ask(self, child: Child, request: ChildRequest[T]) -> T:
        process = child.process
        if process is None or self._closed:
            # Either this thread sees that the pool is closed, or `close` sees the process.
            child.drop()
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
                child.drop()
        self._answered(request.operation, request.n_rows, time.perf_counter() - started)
        return result
