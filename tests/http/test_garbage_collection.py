"""Full garbage collections wait for a moment without large documents."""

import asyncio
import gc
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from own_process import run_apart
from served_requests import until

from service.garbage_collection import (
    DUE,
    OVERDUE,
    collect_garbage,
    postpone_full_collections,
)


@pytest.fixture(autouse=True)
def _postponed() -> Iterator[None]:
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    postpone_full_collections()
    yield
    # What is frozen stays so: services of other tests would scan all of it again and again.
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


def old_garbage(young_collections: int) -> "weakref.ref[threading.Event]":
    """Return garbage that only a full collection finds, after so many collections of young ones."""
    cycle = threading.Event()
    cycle.itself = cycle
    for _ in range(young_collections):
        gc.collect(1)
    return weakref.ref(cycle)


class OneCall:
    """A lane in which one call runs, until it is paused or the call ends."""

    def __init__(self) -> None:
        self.is_running, self.n_looks, self.n_pauses = True, 0, 0

    @property
    def running(self) -> bool:
        self.n_looks += 1
        return self.is_running

    @asynccontextmanager
    async def paused(self, _seconds: float) -> AsyncIterator[None]:
        self.n_pauses += 1
        yield


def test_it_is_collected_when_no_call_runs() -> None:
    async def scene() -> None:
        lane, garbage = OneCall(), old_garbage(DUE)
        collecting = asyncio.create_task(collect_garbage(lane))
        await until(lambda: lane.n_looks > 1)
        assert garbage() is not None
        lane.is_running = False
        await until(lambda: garbage() is None)
        collecting.cancel()
        assert lane.n_pauses == 0

    asyncio.run(scene())


def test_calls_are_paused_when_it_is_overdue() -> None:
    async def scene() -> None:
        lane, garbage = OneCall(), old_garbage(OVERDUE)
        collecting = asyncio.create_task(collect_garbage(lane))
        await until(lambda: garbage() is None)
        collecting.cancel()
        assert lane.n_pauses == 1

    asyncio.run(scene())


FREED = """
import numpy as np
from pathlib import Path
from service.untouched_memory import return_freed_memory

resident = lambda: int(Path("/proc/self/statm").read_text().split()[1]) * 4096
before, kept = resident(), []
for _ in range(3):
    large = [(np.ones(2**19), kept.append(np.ones(2**12))) for _ in range(20)]
    del large
return_freed_memory()
print(resident() - before)
"""


@pytest.mark.process
def test_memory_of_large_blocks_is_returned(tmp_path) -> None:
    assert int(run_apart(FREED, folder=tmp_path)) < 2**24
