"""Tenants take turns in the threads for long work."""

import asyncio
import threading
import uuid

import pytest
from served_requests import until

from service.errors import ShareTaken
from service.http.worker_threads import Lane
from service.shared_amounts import Line

ONE, OTHER = uuid.uuid4(), uuid.uuid4()


def test_a_tenant_leaves_a_thread_and_places_for_others() -> None:
    async def scene() -> None:
        lane, hold = Lane(Line.DOCUMENTS, threads=3, queue=5), threading.Event()
        held = [asyncio.create_task(lane.run(ONE, hold.wait)) for _ in range(4)]
        await until(lambda: lane.running == 2)
        with pytest.raises(ShareTaken):
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
        lane, hold, begun = (
            Lane(Line.DOCUMENTS, threads=2, queue=5),
            threading.Event(),
            threading.Event(),
        )
        statistics = lane._limiter.statistics

        async def pause() -> tuple[bool, bool]:
            async with lane.paused(20):
                return hold.is_set(), begun.is_set()

        running = asyncio.create_task(lane.run(ONE, hold.wait))
        await until(lambda: lane.running == 1)
        pausing = asyncio.create_task(pause())
        await until(lambda: statistics().tasks_waiting == 1)
        waiting = asyncio.create_task(lane.run(OTHER, begun.set))
        await until(lambda: statistics().tasks_waiting == 2)
        hold.set()
        assert await pausing == (True, False)
        await asyncio.gather(running, waiting)
        assert begun.is_set()
        # It does not wait for ever.
        hold.clear()
        running = asyncio.create_task(lane.run(ONE, hold.wait))
        await until(lambda: lane.running == 1)
        async with lane.paused(0.05):
            assert not running.done()
        hold.set()
        assert await running
        assert await lane.run(OTHER, lambda: "again") == "again"

    asyncio.run(scene())
