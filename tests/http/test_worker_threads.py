"""Tenants take turns in the threads for long work."""

import asyncio
import threading
import uuid

import pytest
from runner_children import wait_until

from service.errors import Overloaded
from service.http.worker_threads import Lane

ONE, OTHER = uuid.uuid4(), uuid.uuid4()


def test_a_tenant_leaves_a_thread_and_places_for_others() -> None:
    async def scene() -> None:
        lane, hold = Lane("tests", threads=3, queue=5), threading.Event()
        held = [asyncio.create_task(lane.run(ONE, hold.wait)) for _ in range(4)]
        assert await asyncio.to_thread(wait_until, lambda: lane.running == 2)
        with pytest.raises(Overloaded):
            await lane.run(ONE, hold.wait)
        assert (lane.running, lane.pending) == (2, 2)
        assert await asyncio.wait_for(lane.run(OTHER, lambda: "done"), 20) == "done"
        hold.set()
        assert all(await asyncio.gather(*held))
        assert (lane.running, lane.pending) == (0, 0)
        assert await lane.run(ONE, lambda: "again") == "again"

    asyncio.run(scene())


def test_a_pause_waits_for_running_calls_and_holds_back_others() -> None:
    async def scene() -> None:
        lane, hold = Lane("tests", threads=2, queue=5), threading.Event()
        running = asyncio.create_task(lane.run(ONE, hold.wait))
        assert await asyncio.to_thread(wait_until, lambda: lane.running == 1)
        pausing = asyncio.create_task(_pause(lane, 20))
        await asyncio.sleep(0.05)
        waiting = asyncio.create_task(lane.run(OTHER, lambda: "done"))
        await asyncio.sleep(0.05)
        assert [pausing.done(), waiting.done()] == [False, False]
        hold.set()
        assert await pausing
        assert [await running, await waiting] == [True, "done"]
        # It does not wait for ever.
        hold.clear()
        running = asyncio.create_task(lane.run(ONE, hold.wait))
        assert await asyncio.to_thread(wait_until, lambda: lane.running == 1)
        assert not await _pause(lane, 0.05)
        hold.set()
        assert await running
        assert [await lane.run(name, lambda: "again") for name in (ONE, OTHER)] == ["again"] * 2

    async def _pause(lane: Lane, seconds: float) -> bool:
        """Return whether no call was running."""
        begun = asyncio.get_running_loop().time()
        async with lane.paused(seconds):
            return asyncio.get_running_loop().time() - begun < seconds

    asyncio.run(scene())
