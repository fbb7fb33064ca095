"""Starts child processes, keeps one in reserve, and does not try for ever."""

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from service.errors import Overloaded
from service.runner.process import RunnerProcess, RunnerStartFailed

START_SECONDS = 60.0
FIRST_BACK_OFF_SECONDS = 0.5
LONGEST_BACK_OFF_SECONDS = 30.0

log = logging.getLogger(__name__)


class Spawner:
    """Hands out child processes that are ready for a model.

    All are started from one thread that lives as long as the spawner, since a child dies with the
    thread that started it. After a failed start requests are refused, with the reason, for a time
    that doubles with each failure.
    """

    def __init__(self, *, start_timeout: float = START_SECONDS) -> None:
        self._start_timeout = start_timeout
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="runner-spawner")
        self._lock = threading.Lock()
        self._spare: RunnerProcess | None = None
        self._closed = False
        self._failures = 0
        self._not_before = 0.0
        self._reason = ""

    def take(self) -> RunnerProcess:
        """Return a child that is ready, the spare one if there is one, and start the next.

        Raises
        ------
        Overloaded
            If none can be started at this time, or the spawner is closed.
        """
        with self._lock:
            spare, self._spare = self._spare, None
            self._refuse()
        if spare is not None:
            try:
                spare.wait_ready(self._start_timeout)
            except RunnerStartFailed as error:
                # It may have died of anything while it waited; a fresh one tells.
                log.info("the spare child process was lost: %s", error)
                spare.close()
            else:
                self.prepare()
                return spare
        return self._start_fresh()

    def prepare(self) -> None:
        """Start a spare child, if there is none, without waiting for it."""
        with self._lock:
            if not self._closed and self._spare is None:
                self._thread.submit(self._refill)

    def close(self) -> None:
        """Kill the spare child and start no more; the kernel kills what else was started here."""
        with self._lock:
            self._closed = True
            spare, self._spare = self._spare, None
        if spare is not None:
            spare.close()
        self._thread.shutdown(wait=True)

    def _refuse(self) -> None:
        if self._closed:
            raise Overloaded("The service is shutting down.")
        if time.monotonic() < self._not_before:
            raise Overloaded(f"ONNX models cannot be run at this time: {self._reason}")

    def _start_fresh(self) -> RunnerProcess:
        process: RunnerProcess | None = None
        try:
            process = self._thread.submit(RunnerProcess.start).result()
            process.wait_ready(self._start_timeout)
        except (RunnerStartFailed, RuntimeError) as error:
            if process is not None:
                process.close()
            raise self._failed(error) from error
        with self._lock:
            self._failures = 0
            closed = self._closed
        if closed:
            process.close()
            raise Overloaded("The service is shutting down.")
        self.prepare()
        return process

    def _failed(self, error: Exception) -> Overloaded:
        with self._lock:
            wait = min(FIRST_BACK_OFF_SECONDS * 2.0**self._failures, LONGEST_BACK_OFF_SECONDS)
            self._failures += 1
            self._not_before = time.monotonic() + wait
            self._reason = "the child process that runs them does not start."
        log.error("a child process did not start (%s); next try in %g s", error, wait)
        return Overloaded(f"ONNX models cannot be run at this time: {self._reason}")

    def _refill(self) -> None:
        with self._lock:
            if self._closed or self._spare is not None:
                return
        try:
            spare = RunnerProcess.start()
        except RunnerStartFailed as error:
            log.warning("no spare child process: %s", error)
            return
        with self._lock:
            if not self._closed and self._spare is None:
                self._spare = spare
                return
        spare.close()
