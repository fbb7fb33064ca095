"""Cache of the calibrations that names mean: a database query costs more than a model's run."""

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

from sqlalchemy.exc import OperationalError

from service.errors import Conflict, NotFound, Overloaded
from service.lru_cache import LruCache
from service.predictions.load_calibration import load_served
from service.predictions.served_calibration import ServedCalibration
from service.workspace import SERVED_BYTES, Workspace

# A tenant and its reference to a calibration.
_Key: TypeAlias = tuple[uuid.UUID, str]

# Writes of other processes are seen within this time, those of this process at once.
FRESH_SECONDS = 1.0
# Older answers are renewed in the background.
AGEING_SECONDS = 0.5
# A database that does not answer within this time counts as unavailable.
PATIENCE_SECONDS = 0.5
# A stopping service waits so long for queries.
CLOSE_SECONDS = 5.0
# Cached answers serve this long while the database is unavailable.
STALE_SECONDS = 300.0
# Some may hang on the database while others read the files of large models.
THREADS = 8


@dataclass(slots=True)
class _Entry:
    """A cached answer of the database.

    ``key`` is the time of the query, ``tried`` the time of the last attempt to renew it.
    """

    served: ServedCalibration
    generation: int
    asked: float
    tried: float


@dataclass(frozen=True, slots=True)
class _Lookup:
    """A query in progress; it may not see writes of a later generation."""

    generation: int
    task: "asyncio.Task[ServedCalibration]"


class NameCache:
    """Caches calibrations by tenant and reference; for one event loop.

    A write of this process makes all answers stale: see `Database.generation`.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._database = workspace.database
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="names")
        self._entries: LruCache[_Key, _Entry] = LruCache(SERVED_BYTES, lambda e: e.served.n_bytes)
        self._lookups: dict[_Key, _Lookup] = {}

    def get(self, tenant_id: uuid.UUID, reference: str) -> ServedCalibration | None:
        """Return the calibration that a reference means if a fresh answer is cached."""
        key = (tenant_id, reference)
        entry = self._entries.get(key)
        if entry is None or entry.generation != self._database.generation:
            return None
        age = self._loop.time() - entry.tried
        if age >= FRESH_SECONDS:
            return None
        if age >= AGEING_SECONDS:
            self._look_up(key)
        return entry.served

    async def find(self, tenant_id: uuid.UUID, reference: str) -> ServedCalibration:
        """Look up a reference in the database; simultaneous callers share one query.

        Raises
        ------
        NotFound, Conflict
            If there is no such calibration, or it has not succeeded.
        Overloaded
            If the database is unavailable and no answer is cached.
        """
        key = (tenant_id, reference)
        lookup = asyncio.shield(self._look_up(key))
        if self._usable_entry(key) is None:
            return await lookup
        try:
            return await asyncio.wait_for(lookup, PATIENCE_SECONDS)
        except TimeoutError:
            # Another query may have cached it in the meantime.
            return self._keep_stale(key) or await self._look_up(key)

    async def close(self) -> None:
        """Stop, without waiting long for queries that hang."""
        if self._lookups:
            tasks = [lookup.task for lookup in self._lookups.values()]
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _look_up(self, key: _Key) -> "asyncio.Task[ServedCalibration]":
        generation = self._database.generation
        lookup = self._lookups.get(key)
        if lookup is None or lookup.generation != generation:
            task = self._loop.create_task(self._query(key, generation))
            lookup = self._lookups[key] = _Lookup(generation, task)
            task.add_done_callback(lambda _: self._looked_up(key, lookup))
        return lookup.task

    def _looked_up(self, key: _Key, lookup: _Lookup) -> None:
        if self._lookups.get(key) is lookup:
            del self._lookups[key]
        if not lookup.task.cancelled():
            # Retrieve the exception: no caller may be waiting, and the next one queries again.
            lookup.task.exception()

    async def _query(self, key: _Key, generation: int) -> ServedCalibration:
        began = self._loop.time()
        try:
            served = await self._loop.run_in_executor(
                self._threads, load_served, self._workspace, *key
            )
        except (NotFound, Conflict):
            self._entries.pop(key)
            raise
        except (Overloaded, OperationalError) as error:
            kept = self._keep_stale(key)
            if kept is not None:
                return kept
            if isinstance(error, Overloaded):
                raise
            raise Overloaded("The database does not answer; try again.") from error
        if generation == self._database.generation:
            self._entries.put(key, _Entry(served, generation, began, began))
        return served

    def _keep_stale(self, key: _Key) -> ServedCalibration | None:
        """Keep using the cached answer while the database is unavailable."""
        entry = self._usable_entry(key)
        if entry is None:
            return None
        entry.tried = self._loop.time()
        return entry.served

    def _usable_entry(self, key: _Key) -> _Entry | None:
        entry = self._entries.get(key)
        if entry is None or entry.generation != self._database.generation:
            return None
        return entry if self._loop.time() - entry.asked <= STALE_SECONDS else None
