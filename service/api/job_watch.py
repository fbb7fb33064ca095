"""Following jobs: one look at the database for all who follow any, however many they are."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TypeAlias

import structlog
from starlette.concurrency import run_in_threadpool

from service.errors import Overloaded
from service.operations.followed_jobs import FollowedJob
from service.storage.job_views import JobView

LOOK_SECONDS = 0.25

log = structlog.get_logger(__name__)


Look: TypeAlias = Callable[[Collection[FollowedJob]], Mapping[FollowedJob, JobView]]


class Following:
    """One who follows a job: what was seen of it last, and whether waiting has an end."""

    def __init__(self, job: FollowedJob, view: JobView) -> None:
        self.job = job
        # None once the job is deleted.
        self.view: JobView | None = view
        self.is_over = False
        self._news = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Wait for news, or to be over, up to so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        self._news.clear()

    def see(self, view: JobView | None) -> None:
        """Take note of what the job is now."""
        if view != self.view:
            self.view = view
            self._news.set()

    def end(self) -> None:
        """Let nobody wait any more: the client has left, or the service is to."""
        self.is_over = True
        self._news.set()


class JobWatch:
    """Looks at the jobs that are followed, several times a second while any is.

    All of it happens on one event loop, but ``look``, which runs in a thread.

    Parameters
    ----------
    look : callable
        Reads what the jobs are now; those that it does not return are deleted.
    places : int
        How many may follow at a time.
    stopping : asyncio.Event
        Set once the service is to end: nobody is followed then.
    """

    def __init__(self, look: Look, *, places: int, stopping: asyncio.Event) -> None:
        self._look = look
        self._places = places
        self._stopping = stopping
        self._followers: set[Following] = set()
        self._looking: asyncio.Task[None] | None = None

    @property
    def open(self) -> int:
        """How many follow a job now."""
        return len(self._followers)

    @contextmanager
    def following(self, follower: Following) -> Iterator[None]:
        """Let somebody follow a job until the block ends.

        Raises
        ------
        Overloaded
            If as many follow already as may.
        """
        if self.open >= self._places:
            raise Overloaded("As many progress streams are open as may be; try again.")
        self._followers.add(follower)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_while_followed())
            self._looking.add_done_callback(_tell_failure)
        try:
            yield
        finally:
            self._followers.discard(follower)

    async def close(self) -> None:
        """Let everybody go, and look no more."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait((self._looking,))

    async def _look_while_followed(self) -> None:
        try:
            while self._followers and not await self._stops_within(LOOK_SECONDS):
                await self._look_once()
        finally:
            # Also after a failure: clients come again, and find a new look at it all.
            for follower in self._followers:
                follower.end()

    async def _look_once(self) -> None:
        # Who comes during the look was not looked for.
        asked = list(self._followers)
        try:
            views = await run_in_threadpool(self._look, {follower.job for follower in asked})
        except Overloaded as error:
            log.info("followers_wait", reason=error.message)
            return
        for follower in asked:
            follower.see(views.get(follower.job))

    async def _stops_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        return self._stopping.is_set()


def _tell_failure(looking: "asyncio.Task[None]") -> None:
    if not looking.cancelled() and (error := looking.exception()) is not None:
        log.error("look_failed", exc_info=error)
