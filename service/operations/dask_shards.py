"""Shards on the workers of a Dask cluster, which reach the same artifact store."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING

import structlog

from service.errors import OnnxModelCrashed, Overloaded
from service.operations.record_files import StoredRecords
from service.operations.record_shard import ShardTask
from service.operations.shard_runner import RowsDone, completed

if TYPE_CHECKING:
    from distributed import Client

# Enough that no worker waits for the next shard, few enough that other jobs get their turn.
MOST_SUBMITTED = 256
RETRIES = 3
CONNECT_SECONDS = 10.0

log = structlog.get_logger(__name__)


class DaskShards:
    """Records shards by a Dask scheduler, which gives what a dead worker held to another.

    No array travels: a worker gets an artifact's key, and stores an artifact.

    Parameters
    ----------
    scheduler
        Its address, such as ``tcp://scheduler:8786``.
    record
        What a worker runs: a function that it can import.
    resources
        What one shard takes of a worker, such as ``{"GPU": 1}``; workers must be started with it.
    """

    def __init__(
        self,
        scheduler: str,
        record: Callable[[ShardTask], StoredRecords],
        *,
        resources: Mapping[str, float],
    ) -> None:
        self._scheduler = scheduler
        self._record = record
        self._resources = dict(resources)
        self._lock = threading.Lock()
        self._connected: Client | None = None

    def run(
        self, tasks: Iterable[ShardTask], *, beat: Callable[[], None], done: RowsDone
    ) -> Iterator[StoredRecords]:
        """Record shards, and yield what was stored, in any order; progress is told by the shard.

        Raises
        ------
        Overloaded
            If the scheduler cannot be reached, or goes away.
        OnnxModelCrashed
            If the workers that a shard was given to died of it, one after the other.
        """
        waiting = {task.start: task for task in tasks}
        if not waiting:
            return
        from distributed import KilledWorker  # noqa: PLC0415 - an extra, slow to import

        executor = self._client().get_executor(
            resources=self._resources, retries=RETRIES, pure=False
        )
        try:
            for stored in completed(
                waiting.values(),
                lambda task: executor.submit(self._record, task),
                most=MOST_SUBMITTED,
                beat=beat,
            ):
                done(waiting[stored.start].n_rows)
                yield stored
        except KilledWorker as error:
            raise OnnxModelCrashed(
                f"The worker that ran a part of the set died, {RETRIES + 1} times in a row."
            ) from error
        except (CancelledError, asyncio.CancelledError, OSError) as error:
            raise self._away() from error

    def close(self) -> None:
        """Let go of the scheduler."""
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
                        self._scheduler, timeout=CONNECT_SECONDS, set_as_default=False
                    )
                except (OSError, TimeoutError) as error:
                    raise self._away() from error
            return self._connected

    def _away(self) -> Overloaded:
        log.warning("scheduler_away", scheduler=self._scheduler)
        return Overloaded("The scheduler that gives calibrations to machines cannot be reached.")
