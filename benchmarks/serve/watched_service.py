"""The service with a watchdog: which threads keep others from running, and for how long.

`python -m serve.watched_service serve` is `howsure serve`. Each stall becomes a line of JSON in the
file that ``WATCH_FILE`` names.
"""

import asyncio
import gc
import json
import os
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path
from types import FrameType

from service.cli import main
from service.cli.server import Server

EVERY_SECONDS = 0.001
# CPU time of one thread. Python lets other threads run every five milliseconds.
STALL_SECONDS = 0.012
DEPTH = 12
# Low bits of a Linux clock id that mean a thread's CPU time; the thread's id stands above them.
# `pthread_getcpuclockid` is not safe for threads that end.
_THREAD_CPU = 6


class Watchdog:
    """Measures CPU time that a thread used while no other thread, or no callback, could run.

    A thread of the highest priority wakes every millisecond. The CPU time of each other thread
    since the last wake is the time for which it held the interpreter. The CPU time of the event
    loop's thread between two beats is the time of one iteration.
    """

    def __init__(self, file: str) -> None:
        self._file = Path(file).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115 - until the end
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._beat_cpu = time.thread_time()
        self._worst: tuple[float, list[str]] = (0.0, [])
        self._gc_cpu = 0.0
        gc.callbacks.append(self._collected)
        self._beat()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def _beat(self) -> None:
        cpu = time.thread_time()
        if cpu - self._beat_cpu > STALL_SECONDS:
            self._write("loop", cpu - self._beat_cpu, self._worst[1])
        self._worst = (0.0, [])
        self._beat_cpu = cpu
        self._loop.call_later(EVERY_SECONDS, self._beat)

    def _watch(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -20)
        known: dict[int, float] = {}
        while True:
            time.sleep(EVERY_SECONDS)
            now = _cpu_times()
            frames = sys._current_frames()  # noqa: SLF001 - there is no other way
            for thread, cpu in now.items():
                held = cpu - known.get(thread, cpu)
                if thread == self._loop_thread and held > self._worst[0]:
                    self._worst = (held, _stack(frames.get(thread)))
                if held > STALL_SECONDS:
                    self._write("hold", held, _stack(frames.get(thread)))
            known = now

    def _collected(self, phase: str, about: dict[str, int]) -> None:
        cpu = time.thread_time()
        if phase == "stop" and cpu - self._gc_cpu > STALL_SECONDS:
            kind = f"garbage collection of generation {about['generation']}"
            self._write(kind, cpu - self._gc_cpu, [kind])
        self._gc_cpu = cpu

    def _write(self, kind: str, seconds: float, stack: list[str]) -> None:
        line = {"at": time.monotonic(), "kind": kind, "seconds": seconds, "stack": stack}
        self._file.write(json.dumps(line) + "\n")


def _cpu_times() -> dict[int, float]:
    found = {}
    for thread in threading.enumerate():
        if thread.ident is not None and thread.native_id and thread.name != "watchdog":
            with suppress(OSError):  # it has just ended
                found[thread.ident] = time.clock_gettime(~thread.native_id << 3 | _THREAD_CPU)
    return found


def _stack(frame: FrameType | None) -> list[str]:
    found = traceback.extract_stack(frame)[-DEPTH:] if frame is not None else []
    return [f"{one.filename.rpartition('/')[2]}:{one.lineno} {one.name}" for one in found]


class WatchedServer(Server):
    """The service's server with a watchdog."""

    async def startup(self, sockets: list | None = None) -> None:
        """Start the watchdog first."""
        Watchdog(os.environ["WATCH_FILE"])
        await super().startup(sockets)


def watch() -> None:
    """Run the command line with a watched server."""
    from service.cli import serve

    serve.Server = WatchedServer
    main()


if __name__ == "__main__":
    watch()
