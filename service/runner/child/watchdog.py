"""Stops runs of an ONNX model that take too long."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import onnxruntime as ort

from service.errors import DeadlineExceeded


class Watchdog:
    """Sets the terminate flag of a run whose deadline has passed.

    ONNX Runtime looks at the flag between two nodes, so one long node outlives it; the parent then
    kills this process.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._deadline: float | None = None
        self._budget = 0.0
        self._each: float | None = None
        self._run_deadline: float | None = None
        self._options: ort.RunOptions | None = None
        self._wakes_at: float | None = None
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    @contextmanager
    def request(self, budget: float, each: float | None = None) -> Iterator[None]:
        """Allow all runs of the block ``budget`` seconds together, and one ``each``.

        A budget of 0 sets no limit.
        """
        with self._condition:
            self._budget, self._each = budget, each
            self._deadline = time.monotonic() + budget if budget else None
            self._wake_for(self._deadline)
        try:
            yield
        finally:
            with self._condition:
                self._deadline = None

    @contextmanager
    def run(self) -> Iterator[ort.RunOptions]:
        """Yield options for one run.

        Raises
        ------
        DeadlineExceeded
            If the request's time was over before the run.
        """
        self.check()
        options = ort.RunOptions()  # a terminated one cannot be used again
        with self._condition:
            self._options = options
            if self._each is not None:
                self._run_deadline = time.monotonic() + self._each
                self._wake_for(self._run_deadline)
        try:
            yield options
        finally:
            with self._condition:
                self._options = self._run_deadline = None

    def check(self) -> None:
        """Raise `DeadlineExceeded` if the time of the request, or of the run under way, is over."""
        now = time.monotonic()
        for deadline, budget in ((self._run_deadline, self._each), (self._deadline, self._budget)):
            if deadline is not None and now >= deadline:
                raise DeadlineExceeded(
                    f"The ONNX model did not answer within {budget:g} s and was stopped."
                )

    def _wake_for(self, deadline: float | None) -> None:
        # A thread that wakes before the deadline anyway need not be woken for it: that saves
        # a switch of threads per request.
        if deadline is not None and (self._wakes_at is None or self._wakes_at > deadline):
            self._condition.notify()

    def _watch(self) -> None:
        with self._condition:
            while True:
                deadlines = [at for at in (self._deadline, self._run_deadline) if at is not None]
                remaining = None
                if deadlines:
                    remaining = min(deadlines) - time.monotonic()
                    if remaining <= 0:
                        if self._options is not None:
                            self._options.terminate = True
                        remaining = 0.05  # the next run of the same request may have begun
                self._wakes_at = None if remaining is None else time.monotonic() + remaining
                self._condition.wait(remaining)
