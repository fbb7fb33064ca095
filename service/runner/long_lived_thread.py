"""A thread that outlives whatever is done on it."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class LongLivedThread:
    """Runs functions one after the other on one thread, until it is closed.

    `concurrent.futures` would end its thread as soon as the main thread ends, while others may
    still be at work; this one goes on until the process itself ends.
    """

    def __init__(self, name: str) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, function: Callable[[], T]) -> "Future[T]":
        """Run the function when those before it are done; a closed thread cancels it."""
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
        """Finish what was submitted and end the thread."""
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
    except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
        future.set_exception(error)
