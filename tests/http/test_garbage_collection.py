"""Full garbage collections wait for a moment without large documents."""

import asyncio
import gc
import sys
import threading
import uuid
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from served_requests import until

from service.http.garbage_collection import (
    DUE,
    OVERDUE,
    collect_garbage,
    postpone_full_collections,
)
from service.http.worker_threads import Lane

TENANT = uuid.uuid4()


@pytest.fixture(autouse=True)
def _postponed() -> Iterator[None]:
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    postpone_full_collections()
    yield
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)
    gc.unfreeze()


def old_garbage(young_collections: int) -> "weakref.ref[threading.Event]":
    """Return garbage that only a full collection finds, after so many collections of young ones."""
    cycle = threading.Event()
    cycle.itself = cycle
    for _ in range(young_collections):
        gc.collect(1)
    return weakref.ref(cycle)


class WatchedLane(Lane):
    """Counts how often somebody looks whether a call runs."""

    looks = 0

    @property
    def running(self) -> int:
        self.looks += 1
        return super().running


@asynccontextmanager
async def busy_lane() -> AsyncIterator[WatchedLane]:
    """Yield a lane in which one call runs until the block ends."""
    lane, hold = WatchedLane("tests", threads=2, queue=5), threading.Event()
    running = asyncio.create_task(lane.run(TENANT, hold.wait))
    try:
        await until(lambda: lane.running == 1)
        yield lane
    finally:
        hold.set()
    assert await running


def test_it_is_collected_when_no_call_runs() -> None:
    async def scene() -> None:
        async with busy_lane() as lane:
            garbage = old_garbage(DUE)
            looks = lane.looks
            collecting = asyncio.create_task(collect_garbage(lane))
            await until(lambda: lane.looks > looks + 1)
            assert garbage() is not None
        await until(lambda: garbage() is None)
        collecting.cancel()

    asyncio.run(scene())


def test_it_is_collected_beside_endless_calls_when_it_is_overdue() -> None:
    async def scene() -> None:
        async with busy_lane() as lane:
            garbage = old_garbage(OVERDUE)
            collecting = asyncio.create_task(collect_garbage(lane))
            await until(lambda: garbage() is None)
        collecting.cancel()

    asyncio.run(scene())
