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
        self._options: ort.RunOptions | None = None
        self._wakes_at: float | None = None
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    @contextmanager
    def request(self, budget: float) -> Iterator[None]:
        """Allow all runs of the block ``budget`` seconds together; 0 sets no limit."""
        with self._condition:
            self._budget = budget
            self._deadline = time.monotonic() + budget if budget else None
            # A thread that wakes before the deadline anyway need not be woken for it: that saves
            # a switch of threads per request.
            if self._deadline is not None and (
                self._wakes_at is None or self._wakes_at > self._deadline
            ):
                self._condition.notify()
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
        try:
            yield options
        finally:
            with self._condition:
                self._options = None

    def check(self) -> None:
        """Raise `DeadlineExceeded` if the request's time is over."""
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise DeadlineExceeded(
                f"The ONNX model did not answer within {self._budget:g} s and was stopped."
            )

    def _watch(self) -> None:
        with self._condition:
            while True:
                remaining = None
                if self._deadline is not None:
                    remaining = self._deadline - time.monotonic()
                    if remaining <= 0:
                        if self._options is not None:
                            self._options.terminate = True
                        remaining = 0.05  # the next run of the same request may have begun
                self._wakes_at = None if remaining is None else time.monotonic() + remaining
                self._condition.wait(remaining)
