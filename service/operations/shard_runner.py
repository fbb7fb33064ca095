"""Shards of one job, several at a time: on threads here, or wherever an executor runs."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Protocol, TypeAlias

from service.operations.record_files import StoredRecords
from service.operations.record_shard import ShardTask, ShardTools, record_shard
from service.runner import Device

# One thread prepares a shard while the model of its device works on another's.
THREADS_PER_DEVICE = 2
BEAT_SECONDS = 0.2

Submit: TypeAlias = Callable[[ShardTask], "Future[StoredRecords]"]
# Told, from any thread, how many rows were recorded just now.
RowsDone: TypeAlias = Callable[[int], None]


class ShardStopped(Exception):
    """The job of a shard has ended for another reason."""


class ShardRunner(Protocol):
    """Where shards are recorded."""

    def run(
        self, tasks: Iterable[ShardTask], *, beat: Callable[[], None], done: RowsDone
    ) -> Iterator[StoredRecords]:
        """Record shards, and yield what was stored, in any order.

        ``beat`` is called again and again in the thread that iterates; what it raises stops the
        rest within a batch of rows, or a shard where they run elsewhere.

        Raises
        ------
        ServiceError
            What the first shard that failed raised.
        """

    def close(self) -> None:
        """Let go of what is held between two jobs."""


class ThreadShards:
    """Records shards on threads of this process, each device with a child of its own."""

    def __init__(self, tools: ShardTools) -> None:
        self._tools = tools

    def run(
        self, tasks: Iterable[ShardTask], *, beat: Callable[[], None], done: RowsDone
    ) -> Iterator[StoredRecords]:
        """Record shards, and yield what was stored, in any order."""
        stopped = threading.Event()
        free: queue.SimpleQueue[Device | None] = queue.SimpleQueue()
        waiting = list(tasks)
        devices = self._devices(waiting)
        for device in devices * THREADS_PER_DEVICE:
            free.put(device)

        def check() -> None:
            if stopped.is_set():
                raise ShardStopped

        def record(task: ShardTask) -> StoredRecords:
            device = free.get()
            try:
                check()
                return record_shard(self._tools, task, device=device, check=check, done=done)
            finally:
                free.put(device)

        threads = len(devices) * THREADS_PER_DEVICE
        with (
            ThreadPoolExecutor(threads, thread_name_prefix="shard") as executor,
            stopping(stopped),
        ):
            yield from completed(
                waiting, lambda task: executor.submit(record, task), most=threads, beat=beat
            )

    def close(self) -> None:
        """Hold nothing between two jobs."""

    def _devices(self, tasks: list[ShardTask]) -> tuple[Device | None, ...]:
        """Return the devices to spread the shards over; what has no model needs none."""
        if not tasks or tasks[0].resolved is None:
            return (None,)
        return self._tools.runners.devices()


@contextmanager
def stopping(stopped: threading.Event) -> Iterator[None]:
    """Set the event if the block ends early."""
    try:
        yield
    except BaseException:
        stopped.set()
        raise


def completed(
    tasks: Iterable[ShardTask], submit: Submit, *, most: int, beat: Callable[[], None]
) -> Iterator[StoredRecords]:
    """Submit tasks, not more than ``most`` at a time, and yield their results as they come.

    The first failure ends it, with the others cancelled that have not begun.
    """
    left = iter(tasks)
    running: set[Future[StoredRecords]] = set()
    try:
        while True:
            beat()
            for task in _first(left, most - len(running)):
                running.add(submit(task))
            if not running:
                return
            finished, running = wait(running, timeout=BEAT_SECONDS, return_when=FIRST_COMPLETED)
            for future in finished:
                yield future.result()
    finally:
        for future in running:
            future.cancel()


def _first(left: Iterator[ShardTask], most: int) -> Iterator[ShardTask]:
    for _ in range(most):
        with suppress(StopIteration):
            yield next(left)
