"""An event stream as any ASGI server runs it."""

import asyncio
import time
import uuid
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from typing import Any

from pydantic import BaseModel
from runner_children import wait_until

import models
from service.errors import NotFound, Overloaded
from service.http.job_events import HEARTBEAT, EventStream
from service.http.job_watch import MOST_READERS, JobSubscription, JobWatch
from service.shared_amounts import Line, SharedAmount
from service.storage.overview import FollowedJob, JobView

QUEUED = JobView("queued", None, 0, 0, None)
RUNNING = JobView("running", "fit", 1, 2, None)
DONE = JobView("succeeded", "fit", 2, 2, None)
JOB = FollowedJob(models.Calibration, uuid.UUID(int=1))
TENANT = uuid.UUID(int=2)


class Whole(BaseModel):
    status: str = "succeeded"


class Scene:
    """One client that follows one job, and the database: what it says, or how it fails."""

    def __init__(self, *, heartbeat_seconds: float = 15.0, places: int = 1) -> None:
        self.view: JobView | None = QUEUED
        self.failure: Exception | None = None
        self.n_looks, self.sent = 0, b""
        self.watch = JobWatch(
            self.look, waits=SharedAmount(Line.WAITS, places), stopping=asyncio.Event()
        )
        self._heartbeat_seconds = heartbeat_seconds

    def look(self, _jobs: object) -> dict[FollowedJob, JobView]:
        self.n_looks += 1
        if self.failure:
            raise self.failure
        return {} if self.view is None else {JOB: self.view}

    def read(self) -> BaseModel:
        if self.view is None:
            raise NotFound("gone")
        return Whole()

    async def send(self, message: dict) -> None:
        self.sent += message.get("body", b"")

    def begin(self) -> "asyncio.Task[None]":
        subscription = JobSubscription(JOB, QUEUED)
        options = {"heartbeat_seconds": self._heartbeat_seconds}
        stream = EventStream(subscription, self.watch, TENANT, self.read, **options)
        return asyncio.create_task(stream({}, asyncio.Event().wait, self.send))

    async def sees(self, part: bytes) -> None:
        assert await asyncio.to_thread(wait_until, lambda: part in self.sent)


def played(scene: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Return a test that runs a scene."""
    return lambda: asyncio.run(asyncio.wait_for(scene(), 60))


@played
async def test_a_quiet_stream_sends_heartbeats() -> None:
    quiet = Scene(heartbeat_seconds=0.01)
    task = quiet.begin()
    await quiet.sees(HEARTBEAT + HEARTBEAT)
    quiet.view = DONE
    await task
    assert quiet.sent.count(b"event: ") == 2
    # Without streams the database is not polled.
    await asyncio.wait_for(quiet.watch._polling, 10)


@played
async def test_the_stream_survives_a_database_outage_and_tells_of_a_deletion() -> None:
    patient = Scene()
    task = patient.begin()
    await patient.sees(b"queued")
    patient.failure = Overloaded("The database does not answer.")
    n_looks = patient.n_looks
    assert await asyncio.to_thread(wait_until, lambda: patient.n_looks > n_looks + 1)
    patient.view, patient.failure = RUNNING, None
    await patient.sees(b"running")
    patient.view = None
    await task
    assert b'"status":"deleted"' in patient.sent


@played
async def test_a_failed_poll_ends_all_streams_and_the_next_polls_again() -> None:
    broken = Scene()
    task = broken.begin()
    await broken.sees(b"queued")
    broken.failure = RuntimeError("a bug")
    await task
    assert broken.watch.waits.taken == 0
    assert b"event: end" not in broken.sent
    broken.failure, broken.view = None, DONE
    await broken.begin()
    assert b"event: end" in broken.sent


@played
async def test_streams_that_end_together_leave_threads_for_others() -> None:
    crowd = Scene(places=200)
    n_reading, most = 0, 0

    def read() -> BaseModel:
        nonlocal n_reading, most
        n_reading += 1
        most = max(most, n_reading)
        time.sleep(0.005)
        n_reading -= 1
        return Whole()

    crowd.read = read
    streams = [crowd.begin() for _ in range(40)]
    await crowd.sees(b"queued")
    crowd.view = DONE
    await asyncio.gather(*streams)
    assert crowd.sent.count(b"event: end") == 40
    assert most <= MOST_READERS


@played
async def test_a_tenant_leaves_streams_for_others() -> None:
    watch = Scene(places=6).watch
    with ExitStack() as streams:
        for tenant_id, n_places in ((TENANT, 3), (uuid.uuid4(), 1), (JOB.id, 1), (uuid.uuid4(), 1)):
            before = watch.waits.taken
            with suppress(Overloaded):
                while True:
                    streams.enter_context(watch.streaming(JobSubscription(JOB, QUEUED), tenant_id))
            assert watch.waits.taken == before + n_places
    assert watch.waits.taken == 0
