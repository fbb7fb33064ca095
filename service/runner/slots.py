"""Places for loaded ONNX models: a fixed number, the one longest unused gives way."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from service.errors import Overloaded
from service.runner.process import RunnerProcess

BEAT_SECONDS = 0.5


class Patience:
    """Waits in short beats, for ``seconds`` at most; between beats ``check`` may raise.

    ``check`` is called by whoever waits, never under a lock of the pool's.
    """

    def __init__(self, seconds: float, check: Callable[[], None] | None = None) -> None:
        self._until = time.monotonic() + seconds
        self._check = check

    def beat(self) -> float:
        """Return how long to wait before the next check; 0 when the time is up."""
        return min(max(self._until - time.monotonic(), 0.0), BEAT_SECONDS)

    def go_on(self, reason: str) -> None:
        """Decide after a beat whether to wait on.

        Raises
        ------
        Overloaded
            With this reason, if the time is up.
        """
        if self._check is not None:
            self._check()
        if time.monotonic() >= self._until:
            raise Overloaded(reason)


CLOSED = "The service is shutting down."
ALL_BUSY = "Every process that runs ONNX models is busy with another one."


class Slot:
    """A child process with one ONNX model, and the lock of whoever talks to it.

    ``process`` is None until the model is loaded, and after it was lost.
    """

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.lock = threading.Lock()
        self.process: RunnerProcess | None = None
        self.users = 0

    def drop(self) -> None:
        """Kill the child process, if there is one."""
        process, self.process = self.process, None
        if process is not None:
            process.close()


class Slots:
    """The slots by key, least recently used first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._changed = threading.Condition()
        self._slots: OrderedDict[Hashable, Slot] = OrderedDict()
        self._closed = False

    @property
    def is_closed(self) -> bool:
        """Whether no more slots are given out."""
        return self._closed

    def count_loaded(self) -> int:
        """Return how many slots have a child process."""
        with self._changed:
            return sum(slot.process is not None for slot in self._slots.values())

    @contextmanager
    def hold(self, key: Hashable, patience: Patience) -> Iterator[Slot]:
        """Keep the slot of ``key`` from giving way while the block runs.

        Raises
        ------
        Overloaded
            If all slots are in use for too long, or the pool is closed.
        """
        slot, evicted = self._enter(key, patience)
        try:
            if evicted is not None:
                evicted.drop()
            yield slot
        finally:
            self._leave(slot)

    def rename(self, slot: Slot, key: Hashable) -> bool:
        """Give a held slot another key, unless that one is taken; say whether it has it now."""
        with self._changed:
            if key in self._slots or self._slots.get(slot.key) is not slot:
                return False
            del self._slots[slot.key]
            slot.key = key
            self._slots[key] = slot
            self._changed.notify_all()
            return True

    def close(self) -> None:
        """Kill all child processes and give out no more slots."""
        with self._changed:
            self._closed = True
            slots = list(self._slots.values())
            self._changed.notify_all()
        processes = [slot.process for slot in slots]
        for process in processes:  # first all, so that whoever waits for an answer lets go
            if process is not None:
                process.kill()
        for slot in slots:
            slot.drop()

    def _enter(self, key: Hashable, patience: Patience) -> tuple[Slot, Slot | None]:
        while True:
            with self._changed:
                entered = self._try_enter(key)
                if entered is None:
                    self._changed.wait(patience.beat())
                    entered = self._try_enter(key)
            if entered is not None:
                return entered
            patience.go_on(ALL_BUSY)

    def _try_enter(self, key: Hashable) -> tuple[Slot, Slot | None] | None:
        """Return the slot of ``key`` and the one that gave way to it; None while all are in use."""
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
            # All who wait: many may want the one model that the next of them loads.
            self._changed.notify_all()
