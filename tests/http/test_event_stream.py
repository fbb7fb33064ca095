"""An event stream as any ASGI server runs it."""

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from typing import Any

from pydantic import BaseModel
from runner_children import wait_until

import models
from service.errors import NotFound, Overloaded
from service.http.job_events import HEARTBEAT, EventStream, JobSubscription, JobWatch, progress_of
from service.storage.overview import FollowedJob, JobView

QUEUED = JobView("queued", None, 0, 0, None)
RUNNING = JobView("running", "fit", 1, 2, None)
DONE = JobView("succeeded", "fit", 2, 2, None)
JOB = FollowedJob(models.Calibration, uuid.UUID(int=1))
TENANT = uuid.UUID(int=2)


class Whole(BaseModel):
    status: str = "succeeded"


class Client:
    """Keeps what it is sent, and leaves when told to."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.leaves = asyncio.Event()
        self.more = asyncio.Event()

    async def receive(self) -> dict:
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict) -> None:
        self.sent.append(message.get("body", b""))
        self.more.set()

    async def sees(self, part: bytes) -> None:
        async with asyncio.timeout(10):
            while part not in b"".join(self.sent):
                await self.more.wait()
                self.more.clear()


class Jobs:
    """The database: what it says, or how it fails."""

    def __init__(self) -> None:
        self.view: JobView | None = QUEUED
        self.failure: Exception | None = None
        self.looks = 0

    def look(self, _asked: object) -> dict[FollowedJob, JobView]:
        self.looks += 1
        if self.failure:
            raise self.failure
        return {} if self.view is None else {JOB: self.view}

    def read(self) -> BaseModel:
        if self.failure:
            raise self.failure
        if self.view is None:
            raise NotFound("gone")
        return Whole()


class Scene:
    """One client that follows one job."""

    def __init__(self, heartbeat_seconds: float = 15.0) -> None:
        self.jobs, self.client = Jobs(), Client()
        self.watch = JobWatch(self.jobs.look, places=1, stopping=asyncio.Event())
        self.heartbeat_seconds = heartbeat_seconds

    def stream(self) -> EventStream:
        subscription = JobSubscription(JOB, self.jobs.view)
        heartbeat = {"heartbeat_seconds": self.heartbeat_seconds}
        return EventStream(subscription, self.watch, TENANT, self.jobs.read, **heartbeat)

    def begin(self) -> "asyncio.Task[None]":
        return asyncio.create_task(self.stream()({}, self.client.receive, self.client.send))


def played(scene: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Return a test that runs a scene."""
    return lambda: asyncio.run(asyncio.wait_for(scene(), 20))


@played
async def test_a_quiet_stream_sends_heartbeats() -> None:
    quiet = Scene(heartbeat_seconds=0.01)
    task = quiet.begin()
    await quiet.client.sees(HEARTBEAT + HEARTBEAT)
    quiet.jobs.view = DONE
    await task
    assert b"".join(quiet.client.sent).count(b"event: ") == 2
    # Without streams the database is not polled.
    await asyncio.wait_for(quiet.watch._polling, 10)


@played
async def test_a_failed_send_ends_the_stream() -> None:
    gone = Scene()

    async def send(message: dict) -> None:
        raise OSError("broken pipe")

    await gone.stream()({}, gone.client.receive, send)
    assert gone.watch.open == 0


@played
async def test_the_stream_survives_a_database_outage() -> None:
    patient = Scene()
    task = patient.begin()
    await patient.client.sees(b"queued")
    patient.jobs.failure = Overloaded("The database does not answer.")
    looks = patient.jobs.looks
    assert await asyncio.to_thread(wait_until, lambda: patient.jobs.looks > looks + 1)
    patient.jobs.view, patient.jobs.failure = RUNNING, None
    await patient.client.sees(b"running")
    patient.jobs.view = None
    await task
    assert b'"status":"deleted"' in b"".join(patient.client.sent)


@played
async def test_a_tenant_leaves_streams_for_others() -> None:
    watch = JobWatch(Jobs().look, places=6, stopping=asyncio.Event())
    with ExitStack() as streams:

        def opened(tenant_id: uuid.UUID) -> int:
            count = 0
            with suppress(Overloaded):
                while True:
                    streams.enter_context(watch.streaming(JobSubscription(JOB, QUEUED), tenant_id))
                    count += 1
            return count

        assert opened(TENANT) == 3
        assert opened(uuid.uuid4()) == 2
        assert opened(uuid.uuid4()) == 1
        assert opened(uuid.uuid4()) == 0
    assert watch.open == 0


@played
async def test_a_failed_poll_ends_all_streams() -> None:
    broken = Scene()
    task = broken.begin()
    await broken.client.sees(b"queued")
    broken.jobs.failure = RuntimeError("a bug")
    await task
    assert broken.watch.open == 0
    broken.jobs.failure = None
    broken.client = Client()
    task = broken.begin()
    await broken.client.sees(b"queued")
    broken.jobs.view = DONE
    await task
    assert b"event: end" in b"".join(broken.client.sent)


RATES = [(2500, 5000, 1250.0, 2.0), (5000, 5000, 1250.0, 0.0), (0, 3, 0.001, 3000.0)]
RATES += [(2500, 5000, None, None), (2500, 5000, 0.0, None), (2500, 0, 1250.0, None)]


def test_the_remaining_time_follows_from_the_rate() -> None:
    for done, total, rate, eta in RATES:
        progress = progress_of(JobView("running", "calibration", done, total, rate))
        assert (progress.stage, progress.done, progress.total) == ("calibration", done, total)
        assert (progress.rows_per_second, progress.eta_seconds) == (rate, eta)


def test_a_job_that_does_not_run_has_no_progress() -> None:
    for status in ("queued", "succeeded", "failed", "cancelled"):
        assert progress_of(JobView(status, "fit", 1, 2, 3.0)) is None
    assert progress_of(JobView("running", None, 0, 0, None)) is None
