"""Stops runs of an ONNX model that take too long."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import onnxruntime as ort

from service.errors import DeadlineExceeded

# Record no CUDA graph. The runtime looks this entry up at each run with bound inputs. If it is
# missing, the runtime throws a C++ exception, which takes as long as a small model.
NO_CUDA_GRAPH = ("gpu_graph_id", "-1")


class Watchdog:
    """Sets the terminate flag of a run whose deadline has passed; one run at a time.

    ONNX Runtime checks the flag between two nodes. If a single node takes too long, the parent
    kills this process.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # The methods of a condition are slow Python code: each run takes the lock directly.
        self._lock = threading.Lock()
        self._condition = threading.Condition(self._lock)
        self._deadline: float | None = None
        self._budget = 0.0
        self._each: float | None = None
        self._run_deadline: float | None = None
        self._options = _run_options()
        self._is_running = False
        self._has_terminated = False
        self._wakes_at: float | None = None
        self._is_watching = False

    @contextmanager
    def request(self, budget: float, each: float | None = None) -> Iterator[None]:
        """Allow all runs of the block ``budget`` seconds together, and one ``each``.

        A budget of 0 sets no limit.
        """
        self.allow(budget, each)
        try:
            yield
        finally:
            self.rest()

    def allow(self, budget: float, each: float | None) -> None:
        """Start the time of a request; the caller must call `rest` afterwards."""
        with self._lock:
            self._budget, self._each = budget, each
            self._deadline = deadline = self._clock() + budget if budget else None
            # The thread need not be woken if it wakes before the deadline anyway. This saves a
            # thread switch for each request.
            if deadline is not None and (self._wakes_at is None or self._wakes_at > deadline):
                self._condition.notify()

    def rest(self) -> None:
        """End the time of a request."""
        self._deadline = None

    def begin(self) -> ort.RunOptions:
        """Begin a run and return its options; the caller must call `end` afterwards.

        Raises
        ------
        DeadlineExceeded
            If the time of the request is over; the run has not begun.
        """
        now = self._clock()
        with self._lock:
            if self._deadline is not None and now >= self._deadline:
                raise _exceeded(self._budget)
            if not self._is_watching:
                # Started at the first run: the rights that a process drops apply to threads
                # that are started later, but not to existing ones.
                self._is_watching = True
                threading.Thread(target=self._watch, name="watchdog", daemon=True).start()
            self._is_running = True
            if self._each is not None:
                self._run_deadline = now + self._each
                if self._wakes_at is None or self._wakes_at > self._run_deadline:
                    self._condition.notify()
            return self._options

    def end(self) -> None:
        """End the run; its flag is no longer set."""
        with self._lock:
            self._is_running = False
            self._run_deadline = None
            if self._has_terminated:  # such options would stop the next run as well
                self._has_terminated = False
                self._options = _run_options()

    def check(self) -> None:
        """Raise `DeadlineExceeded` if the time of the request or of the current run is over."""
        now = self._clock()
        for deadline, budget in ((self._run_deadline, self._each), (self._deadline, self._budget)):
            if deadline is not None and budget is not None and now >= deadline:
                raise _exceeded(budget)

    def _watch(self) -> None:
        with self._condition:
            while True:
                deadlines = [at for at in (self._deadline, self._run_deadline) if at is not None]
                remaining = None
                if deadlines:
                    remaining = min(deadlines) - self._clock()
                    if remaining <= 0:
                        if self._is_running:
                            self._options.terminate = self._has_terminated = True
                        remaining = 0.05  # the next run of the same request may have begun
                self._wakes_at = None if remaining is None else self._clock() + remaining
                self._condition.wait(remaining)


def _exceeded(budget: float) -> DeadlineExceeded:
    return DeadlineExceeded(f"The ONNX model did not answer within {budget:g} s and was stopped.")


def _run_options() -> ort.RunOptions:
    options = ort.RunOptions()
    options.add_run_config_entry(*NO_CUDA_GRAPH)
    return options
