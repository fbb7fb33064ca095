"""Starts child processes, keeps a spare one, and backs off after failures."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar

from service.errors import Overloaded
from service.runner.process import RunnerProcess, RunnerStartFailed

T = TypeVar("T")


class LongLivedThread:
    """Runs functions one after the other on one thread.

    `concurrent.futures` ends its threads when the main thread ends, while other threads may still
    work. This thread lives until it is closed or the process ends.
    """

    def __init__(self, name: str) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, function: Callable[[], T]) -> "Future[T]":
        """Run the function after those submitted before; a closed thread cancels it."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                future.cancel()
                return future
            if self._thread.ident is None:
                self._thread.start()
            self._waiting.put(lambda: _fulfil(future, function))
        return future

    def close(self) -> None:
        """Run all submitted functions and end the thread."""
        with self._lock:
            self._closed = True
            self._waiting.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while (task := self._waiting.get()) is not None:
            task()


def _fulfil(future: "Future[Any]", function: Callable[[], Any]) -> None:
    try:
        future.set_result(function())
    except BaseException as error:  # noqa: BLE001 - the future raises it again
        future.set_exception(error)


CLOSED = "The service is shutting down."
START_SECONDS = 60.0
FIRST_BACK_OFF_SECONDS = 0.5
LONGEST_BACK_OFF_SECONDS = 30.0
UNAVAILABLE = (
    "ONNX models cannot run now: their process does not start. See the log of the service."
)

# Starts a child process without waiting until it is ready.
StartChild = Callable[[], RunnerProcess]

log = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class Spawner:
    """Returns child processes that are ready for a request.

    One thread, which lives as long as the spawner, starts them all, since a child dies with the
    thread that started it. After two failures in a row, requests are refused for a time that
    doubles with each further failure.
    """

    start: StartChild = RunnerProcess.start
    _: KW_ONLY
    start_timeout: float = START_SECONDS
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._thread = LongLivedThread("runner-spawner")
        self._lock = threading.Lock()
        self._spare: RunnerProcess | None = None
        self._closed = False
        self._failures = 0
        self._not_before = 0.0

    def take(self) -> RunnerProcess:
        """Return a child that is ready, the spare one if there is one, and start the next spare.

        Raises
        ------
        Overloaded
            If no child can be started now, or the spawner is closed.
        """
        with self._lock:
            if self._spare is None or self._closed:
                self._refuse()
            spare, self._spare = self._spare, None
        if spare is not None:
            if self._is_ready(spare):
                self.prepare()
                return spare
            # It may have died of anything; a new child shows whether children start at all.
            spare.close()
        return self._start_fresh()

    def prepare(self) -> None:
        """Start a spare child, if there is none, without waiting for it."""
        with self._lock:
            if not self._closed and self._spare is None:
                self._thread.submit(self._refill)

    def close(self) -> None:
        """Kill the spare child and start no more; the kernel kills all others started here."""
        with self._lock:
            self._closed = True
            spare, self._spare = self._spare, None
        if spare is not None:
            spare.close()
        self._thread.close()

    def _refuse(self) -> None:
        if self._closed:
            raise Overloaded(CLOSED)
        if self.clock() < self._not_before:
            raise Overloaded(UNAVAILABLE)

    def _is_ready(self, spare: RunnerProcess) -> bool:
        try:
            spare.wait_ready(self.start_timeout)
        except RunnerStartFailed as error:
            log.info("the spare child process was lost: %s", error)
            return False
        return spare.is_alive()  # it may have died after its first message

    def _start_fresh(self) -> RunnerProcess:
        process = self._started() or self._started(last=True)
        if process is None:
            self._refuse()
            raise Overloaded(UNAVAILABLE)
        with self._lock:
            self._failures, self._not_before = 0, 0.0
        if self._closed:
            process.close()
            raise Overloaded(CLOSED)
        self.prepare()
        return process

    def _started(self, *, last: bool = False) -> RunnerProcess | None:
        """Return a child that is ready, or None; after a ``last`` failure the back-off begins."""
        process: RunnerProcess | None = None
        try:
            process = self._thread.submit(self.start).result()
            process.wait_ready(self.start_timeout)
        except CancelledError as error:
            raise Overloaded(CLOSED) from error
        except RunnerStartFailed as error:
            if process is not None:
                process.close()
            if last:
                self._failed(error)
            return None
        return process

    def _failed(self, error: Exception) -> None:
        with self._lock:
            wait = min(FIRST_BACK_OFF_SECONDS * 2.0**self._failures, LONGEST_BACK_OFF_SECONDS)
            self._failures += 1
            self._not_before = self.clock() + wait
        log.error("a child process did not start (%s); next try in %g s", error, wait)

    def _refill(self) -> None:
        with self._lock:
            if self._closed or self._spare is not None:
                return
        try:
            spare = self.start()
        except RunnerStartFailed as error:
            log.warning("no spare child process: %s", error)
            return
        with self._lock:
            if not self._closed and self._spare is None:
                self._spare = spare
                return
        spare.close()
