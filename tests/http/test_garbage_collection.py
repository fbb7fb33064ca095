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
from runner_children import wait_until

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


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def old_garbage(young_collections: int) -> "weakref.ref[Cycle]":
    """Return garbage that only a full collection finds, after so many collections of young ones."""
    cycle = Cycle()
    for _ in range(young_collections):
        gc.collect(1)
    return weakref.ref(cycle)


@asynccontextmanager
async def busy_lane() -> AsyncIterator[Lane]:
    """Yield a lane in which one call runs until the block ends."""
    lane, hold = Lane("tests", threads=2, queue=5), threading.Event()
    running = asyncio.create_task(lane.run(TENANT, hold.wait))
    try:
        assert await asyncio.to_thread(wait_until, lambda: lane.running == 1)
        yield lane
    finally:
        hold.set()
    assert await running


def test_it_is_collected_when_no_call_runs() -> None:
    async def scene() -> None:
        async with busy_lane() as lane:
            found = old_garbage(DUE)
            collecting = asyncio.create_task(collect_garbage(lane))
            await asyncio.sleep(0.5)
            assert found() is not None
        assert await asyncio.to_thread(wait_until, lambda: found() is None)
        collecting.cancel()

    asyncio.run(scene())


def test_it_is_collected_beside_endless_calls_when_it_is_overdue() -> None:
    async def scene() -> None:
        async with busy_lane() as lane:
            found = old_garbage(OVERDUE)
            collecting = asyncio.create_task(collect_garbage(lane))
            assert await asyncio.to_thread(wait_until, lambda: found() is None)
        collecting.cancel()

    asyncio.run(scene())
