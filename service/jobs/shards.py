"""Recording of a job's shards, several at a time: on threads here or on a Dask cluster."""

import asyncio
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeAlias

import structlog

from service.errors import OnnxModelCrashed, Overloaded
from service.jobs.recording import RecordingContext, ShardTask, record_shard
from service.runner.devices import Device
from service.storage.shards import StoredRecords

# One thread prepares a shard while the model of its device works on another's.
THREADS_PER_DEVICE = 2
POLL_SECONDS = 0.2

Submit: TypeAlias = Callable[[ShardTask], "Future[StoredRecords]"]
# Called from any thread with the number of rows just recorded.
RowsDone: TypeAlias = Callable[[int], None]


class ShardCancelled(Exception):
    """Another part of the job failed or was stopped."""


class ShardRunner(Protocol):
    """Runs the shards of a job."""

    def run(
        self, tasks: Iterable[ShardTask], *, on_poll: Callable[[], None], on_rows: RowsDone
    ) -> Iterator[StoredRecords]:
        """Record shards and yield the stored records in any order.

        ``on_poll`` is called repeatedly in the thread that iterates. If it raises, the other
        shards stop after the current batch of rows; on a cluster, after the current shard.

        Raises
        ------
        ServiceError
            The error of the first shard that failed.
        """

    def close(self) -> None:
        """Release what is kept between two jobs."""


class ThreadShards:
    """Records shards on threads of this process; each device has its own child process."""

    def __init__(self, tools: RecordingContext) -> None:
        self._tools = tools

    def run(
        self, tasks: Iterable[ShardTask], *, on_poll: Callable[[], None], on_rows: RowsDone
    ) -> Iterator[StoredRecords]:
        """Record shards and yield the stored records in any order."""
        stopped = threading.Event()
        free: queue.SimpleQueue[Device | None] = queue.SimpleQueue()
        waiting = list(tasks)
        devices = self._devices(waiting)
        for device in devices * THREADS_PER_DEVICE:
            free.put(device)

        def check() -> None:
            if stopped.is_set():
                raise ShardCancelled

        def record(task: ShardTask) -> StoredRecords:
            device = free.get()
            try:
                check()
                return record_shard(self._tools, task, device=device, check=check, done=on_rows)
            finally:
                free.put(device)

        threads = len(devices) * THREADS_PER_DEVICE
        with ThreadPoolExecutor(threads, thread_name_prefix="shard") as executor:
            try:
                yield from completed(
                    waiting,
                    lambda task: executor.submit(record, task),
                    most=threads,
                    on_poll=on_poll,
                )
            finally:
                stopped.set()

    def close(self) -> None:
        """Do nothing: nothing is kept between two jobs."""

    def _devices(self, tasks: list[ShardTask]) -> tuple[Device | None, ...]:
        """Return the devices that share the shards; without a model none is needed."""
        if not tasks or tasks[0].resolved is None:
            return (None,)
        return self._tools.runners.devices()


def completed(
    tasks: Iterable[ShardTask], submit: Submit, *, most: int, on_poll: Callable[[], None]
) -> Iterator[StoredRecords]:
    """Submit at most ``most`` tasks at a time and yield their results as they complete.

    The first failure cancels the tasks that have not begun.
    """
    left = iter(tasks)
    running: set[Future[StoredRecords]] = set()
    try:
        while True:
            on_poll()
            for task in islice(left, most - len(running)):
                running.add(submit(task))
            if not running:
                return
            finished, running = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in finished:
                yield future.result()
    finally:
        for future in running:
            future.cancel()


if TYPE_CHECKING:
    from distributed import Client

# Enough to keep all workers busy, few enough to give other jobs their turn.
MOST_SUBMITTED = 256
RETRIES = 3
CONNECT_SECONDS = 10.0

log = structlog.get_logger(__name__)


@dataclass(eq=False, repr=False)
class DaskShards:
    """Records shards on a Dask cluster; the scheduler gives a dead worker's shards to another.

    No array is sent: a worker receives the key of an artifact and stores an artifact.

    Parameters
    ----------
    scheduler
        Its address, such as ``tcp://scheduler:8786``.
    record
        The function that a worker imports and runs.
    resources
        The resources of a worker that one shard needs, such as ``{"GPU": 1}``. Workers must be
        started with them.
    """

    scheduler: str
    record: Callable[[ShardTask], StoredRecords]
    _: KW_ONLY
    resources: Mapping[str, float]

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._connected: Client | None = None

    def run(
        self, tasks: Iterable[ShardTask], *, on_poll: Callable[[], None], on_rows: RowsDone
    ) -> Iterator[StoredRecords]:
        """Record shards and yield the stored records in any order; progress counts whole shards.

        Raises
        ------
        Overloaded
            If the scheduler cannot be reached or disappears.
        OnnxModelCrashed
            If several workers died while they ran the same shard.
        """
        waiting = {task.start: task for task in tasks}
        if not waiting:
            return
        from distributed import KilledWorker  # noqa: PLC0415 - an extra, slow to import

        executor = self._client().get_executor(
            resources=dict(self.resources), retries=RETRIES, pure=False
        )
        try:
            for stored in completed(
                waiting.values(),
                lambda task: executor.submit(self.record, task),
                most=MOST_SUBMITTED,
                on_poll=on_poll,
            ):
                on_rows(waiting[stored.start].n_rows)
                yield stored
        except KilledWorker as error:
            raise OnnxModelCrashed(
                f"The worker that ran a part of the set died {RETRIES + 1} times in a row."
            ) from error
        except (CancelledError, asyncio.CancelledError, OSError) as error:
            raise self._away() from error

    def close(self) -> None:
        """Disconnect from the scheduler."""
        with self._lock:
            client, self._connected = self._connected, None
        if client is not None:
            client.close(timeout=CONNECT_SECONDS)

    def _client(self) -> "Client":
        from distributed import Client  # noqa: PLC0415 - an extra, slow to import

        with self._lock:
            if self._connected is None or self._connected.status != "running":
                try:
                    self._connected = Client(
                        self.scheduler, timeout=CONNECT_SECONDS, set_as_default=False
                    )
                except (OSError, TimeoutError) as error:
                    raise self._away() from error
            return self._connected

    def _away(self) -> Overloaded:
        log.warning("scheduler_away", scheduler=self.scheduler)
        return Overloaded("The Dask scheduler cannot be reached.")
