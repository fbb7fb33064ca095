"""Waits for changes of jobs: one poll for all clients that wait."""

import asyncio
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from typing import TypeAlias, TypeVar
from uuid import UUID

import structlog
from anyio import CapacityLimiter, to_thread
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive

import models
from models import UNFINISHED
from service.access.api_keys import CALLER, Caller
from service.errors import Overloaded, TooManyRequests
from service.shared_amounts import SharedAmount
from service.storage.overview import FollowedJob, JobView, view_of

Job: TypeAlias = models.Calibration | models.Evaluation
Read = TypeVar("Read")
Row = TypeVar("Row", models.Calibration, models.Evaluation)

# Many jobs are short, so the first polls follow each other faster.
FIRST_LOOK_SECONDS = 0.05
LOOK_SECONDS = 0.25
# A thousand clients may wait for the end of one job. Their reads leave threads to other requests.
MOST_READERS = 4

log = structlog.get_logger(__name__)

Look: TypeAlias = Callable[[Collection[FollowedJob]], Mapping[FollowedJob, JobView]]


class JobSubscription:
    """A client that waits for changes of a job; ``view`` is the last known state of the job."""

    def __init__(self, job: FollowedJob, view: JobView) -> None:
        self.job = job
        # None once the job is deleted.
        self.view: JobView | None = view
        self.closed = False
        self._changed = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Wait for a change or the end of the subscription, up to so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        self._changed.clear()

    def is_unfinished(self) -> bool:
        """Tell whether the job was queued or running when last seen."""
        return self.view is not None and self.view.status in UNFINISHED

    def see(self, view: JobView | None) -> None:
        """Update the state of the job."""
        if view != self.view:
            self.view = view
            self._changed.set()

    def close(self) -> None:
        """End the subscription: the client has left, or the service is stopping."""
        self.closed = True
        self._changed.set()

    @contextmanager
    def closed_by(self, receive: Receive) -> Iterator[None]:
        """Close the subscription as soon as its client leaves, until the block ends."""
        left = asyncio.ensure_future(client_leaves(receive))
        left.add_done_callback(lambda _: self.close())
        try:
            yield
        finally:
            left.cancel()


async def client_leaves(receive: Receive) -> None:
    """Wait until the client of a completely received request disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


@dataclass(eq=False, repr=False)
class JobWatch:
    """Polls the jobs of all subscriptions, several times a second while there are any.

    It belongs to one event loop; only ``look`` runs in a thread.

    Parameters
    ----------
    look : callable
        Reads the jobs; those that it does not return are deleted.
    waits : SharedAmount
        Connections that wait for jobs.
    stopping : asyncio.Event
        Set when the service stops: then all subscriptions end.
    max_wait_seconds : float
        Longest wait for `Prefer: wait`.
    """

    look: Look
    _: KW_ONLY
    waits: SharedAmount
    stopping: asyncio.Event
    max_wait_seconds: float = 600.0

    def __post_init__(self) -> None:
        self._subscriptions: set[JobSubscription] = set()
        self._readers = CapacityLimiter(MOST_READERS)
        self._polling: asyncio.Task[None] | None = None

    @contextmanager
    def streaming(self, subscription: JobSubscription, tenant_id: UUID) -> Iterator[None]:
        """Poll the job of a tenant's progress stream until the block ends.

        Raises
        ------
        ShareTaken, TooManyRequests
            If too many connections wait.
        """
        with self.waits.held(tenant_id), self._polled(subscription):
            yield

    def wait_seconds(self, request: Request) -> float:
        """Return the number of seconds in `Prefer: wait=N`, up to the limit; 0 without it."""
        prefer = request.headers.get("prefer", "")
        found = re.search(r'(?:^|[\s,;])wait\s*=\s*"?(\d{1,6})', prefer, re.IGNORECASE)
        return min(float(found[1]) if found else 0.0, self.max_wait_seconds)

    async def wait_until_finished(
        self, request: Request, read: Callable[[], Row]
    ) -> tuple[Row, float]:
        """Return a job's row, with `Prefer: wait` once it has finished, and the seconds applied.

        The wait ends early if its time is over, the client leaves or the service stops, and at once
        if too many connections wait.
        """
        row = await run_in_threadpool(read)
        seconds = self.wait_seconds(request)
        if is_finished(row) or not seconds:
            return row, seconds
        subscription = JobSubscription(FollowedJob(type(row), row.id), view_of(row))
        caller: Caller = request.scope[CALLER]
        try:
            with (
                self.waits.held(caller.tenant_id),
                subscription.closed_by(request.receive),
                self._polled(subscription),
                suppress(TimeoutError),
            ):
                async with asyncio.timeout(seconds):
                    while not subscription.closed and subscription.is_unfinished():
                        await subscription.wait(seconds)
        except TooManyRequests:
            seconds = 0.0
        return await self.read_in_turn(read), seconds

    async def read_in_turn(self, read: Callable[[], Read]) -> Read:
        """Read a job after a wait, in one of few threads."""
        return await to_thread.run_sync(read, limiter=self._readers)

    @contextmanager
    def _polled(self, subscription: JobSubscription) -> Iterator[None]:
        self._subscriptions.add(subscription)
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll())
            self._polling.add_done_callback(_log_failure)
        try:
            yield
        finally:
            self._subscriptions.discard(subscription)

    async def close(self) -> None:
        """Stop polling and end all subscriptions."""
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.wait((self._polling,))

    async def _poll(self) -> None:
        pause = FIRST_LOOK_SECONDS
        try:
            while self._subscriptions and not await self._stops_within(pause):
                await self._look_once()
                pause = min(1.5 * pause, LOOK_SECONDS)
        finally:
            # Also after a failure: clients reconnect, and that starts the polling again.
            for subscription in self._subscriptions:
                subscription.close()

    async def _look_once(self) -> None:
        # Subscriptions that begin during the look are not part of it.
        polled = list(self._subscriptions)
        try:
            views = await run_in_threadpool(self.look, {found.job for found in polled})
        except Overloaded as error:
            log.info("followers_wait", reason=error.message)
            return
        for subscription in polled:
            subscription.see(views.get(subscription.job))

    async def _stops_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        return self.stopping.is_set()


def _log_failure(polling: "asyncio.Task[None]") -> None:
    if not polling.cancelled() and (error := polling.exception()) is not None:
        log.error("look_failed", exc_info=error)


def is_finished(job: Job) -> bool:
    """Tell whether a job has succeeded, failed or been cancelled."""
    return job.status not in UNFINISHED
