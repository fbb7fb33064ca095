"""How far a job is, as every resource that is one shows it."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol, TypeAlias, TypeVar
from uuid import UUID

import structlog
from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

import models
from models import UNFINISHED
from service.errors import NotFound, Overloaded
from service.jobs.queue import JobTable
from service.storage.evaluations import EvaluationRepository
from service.storage.overview import JobView, job_views, view_of
from service.workspace import Workspace


class Progress(BaseModel):
    """How far a running job has come: with the stage that it is at, not with all of them."""

    stage: str = Field(examples=["calibration"], description="What it is at.")
    done: int = Field(examples=[2560], description="How much of the stage is done.")
    total: int = Field(examples=[5000], description="How much there is; 0 where not known.")
    rows_per_second: float | None = Field(
        examples=[1250.0],
        description="Rows, or what else `done` counts, of the present stage in a second, over the "
        "last half minute of this attempt; null while unknown.",
    )
    eta_seconds: float | None = Field(
        examples=[1.95],
        description="Seconds to the end of the present stage at that rate, not to the end of the "
        "job; null while unknown.",
    )


class HasProgress(Protocol):
    """A job, or what is known of one."""

    @property
    def status(self) -> models.JobStatus:
        """Where it stands."""

    @property
    def progress_stage(self) -> str | None:
        """What it is at."""

    @property
    def progress_done(self) -> int:
        """How much of the stage is done."""

    @property
    def progress_total(self) -> int:
        """How much there is."""

    @property
    def progress_rate(self) -> float | None:
        """What is done in a second."""


def progress_of(job: HasProgress) -> Progress | None:
    """Return how far a running job has come."""
    if job.status != "running" or job.progress_stage is None:
        return None
    rate, left = job.progress_rate, job.progress_total - job.progress_done
    eta = round(left / rate, 2) if rate and job.progress_total else None
    return Progress(
        stage=job.progress_stage,
        done=job.progress_done,
        total=job.progress_total,
        rows_per_second=None if rate is None else round(rate, 3),
        eta_seconds=eta,
    )


@dataclass(frozen=True)
class FollowedJob:
    """Which job somebody follows."""

    table: type[JobTable]
    id: UUID


def look_at(workspace: Workspace, jobs: Collection[FollowedJob]) -> Mapping[FollowedJob, JobView]:
    """Return where these jobs stand; those that are deleted lack."""
    found: dict[FollowedJob, JobView] = {}
    with workspace.database.reading() as session:
        for table in {job.table for job in jobs}:
            ids = [job.id for job in jobs if job.table is table]
            views = job_views(session, table, ids)
            found |= {FollowedJob(table, job_id): view for job_id, view in views.items()}
    return found


def evaluation_of_id(
    workspace: Workspace, tenant_id: UUID, evaluation_id: UUID
) -> models.Evaluation:
    """Return an evaluation by its id: its name may be another's by now."""
    with workspace.database.reading() as session:
        return EvaluationRepository(session, tenant_id).by_id(evaluation_id)


# Many jobs are short: the first looks come sooner than those that follow.
FIRST_LOOK_SECONDS = 0.05
LOOK_SECONDS = 0.25

log = structlog.get_logger(__name__)


Look: TypeAlias = Callable[[Collection[FollowedJob]], Mapping[FollowedJob, JobView]]


class JobSubscription:
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

    def is_unfinished(self) -> bool:
        """Tell whether the job is queued or running, as far as is known."""
        return self.view is not None and self.view.status in UNFINISHED

    def see(self, view: JobView | None) -> None:
        """Take note of what the job is now."""
        if view != self.view:
            self.view = view
            self._news.set()

    def end(self) -> None:
        """Let nobody wait any more: the client has left, or the service is to."""
        self.is_over = True
        self._news.set()


async def client_leaves(receive: Receive) -> None:
    """Wait until the client of a request that was received whole has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


class JobWatch:
    """Looks at the jobs that are followed, several times a second while any is.

    All of it happens on one event loop, but ``look``, which runs in a thread.

    Parameters
    ----------
    look : callable
        Reads what the jobs are now; those that it does not return are deleted.
    places : int
        How many progress streams may be open at a time.
    stopping : asyncio.Event
        Set once the service is to end: nobody is followed then.
    """

    def __init__(self, look: Look, *, places: int, stopping: asyncio.Event) -> None:
        self._look = look
        self._places = places
        self._stopping = stopping
        self._followers: set[JobSubscription] = set()
        self._n_streams = 0
        self._looking: asyncio.Task[None] | None = None

    @property
    def open(self) -> int:
        """How many progress streams are open."""
        return self._n_streams

    @contextmanager
    def streaming(self, follower: JobSubscription) -> Iterator[None]:
        """Let a progress stream follow a job until the block ends.

        Raises
        ------
        Overloaded
            If as many are open already as may be.
        """
        if self._n_streams >= self._places:
            raise Overloaded("As many progress streams are open as may be; try again.")
        self._n_streams += 1
        try:
            with self._following(follower):
                yield
        finally:
            self._n_streams -= 1

    async def finished(self, follower: JobSubscription, receive: Receive, seconds: float) -> None:
        """Wait until a job has ended, up to so many seconds, or until its client has left."""
        left = asyncio.ensure_future(client_leaves(receive))
        left.add_done_callback(lambda _: follower.end())
        try:
            with self._following(follower), suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while not follower.is_over and follower.is_unfinished():
                        await follower.wait(seconds)
        finally:
            left.cancel()

    @contextmanager
    def _following(self, follower: JobSubscription) -> Iterator[None]:
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
        pause = FIRST_LOOK_SECONDS
        try:
            while self._followers and not await self._stops_within(pause):
                await self._look_once()
                pause = min(1.5 * pause, LOOK_SECONDS)
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


HEARTBEAT_SECONDS = 15.0
HEARTBEAT = b": nothing new\n\n"
# How long a browser that lost its connection is to wait.
RETRY_MILLISECONDS = 2000
AGAIN_SECONDS = 1.0
HEADERS = {
    "Cache-Control": "no-store",
    # Some proxies keep an answer back until it is whole.
    "X-Accel-Buffering": "no",
}

ReadWhole = Callable[[], BaseModel]


class JobEvent(BaseModel):
    """What an event `progress` says."""

    status: models.JobStatus = Field(description="Where the job stands.")
    progress: Progress | None = Field(description="While it runs; null else.")


class DeletedJob(BaseModel):
    """What the event `end` says of a job that is gone."""

    id: UUID = Field(description="Of what was deleted.")
    status: str = Field("deleted", description="No status that a job has.")


class EventStream(StreamingResponse):
    """Tells one client how far a job is whenever that changes, and then of its end.

    No thread is held, and its place is free as soon as the client has left. If the service is to
    end, so does the stream, without a last event: who comes again goes on.

    Parameters
    ----------
    followed : Following
        The job, as it was a moment ago.
    watch : JobWatch
        Where it takes a place, unless the job has ended already.
    read : callable
        Returns the whole resource, by its id; called in a thread when the job has ended.
    """

    # Not FastAPI's own class, which routes take for the mark of a generator: that would hold its
    # place until the next event, and could not refuse one any more.
    media_type = "text/event-stream"

    def __init__(
        self,
        followed: JobSubscription,
        watch: JobWatch,
        read: ReadWhole,
        *,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        self._followed = followed
        self._watch = watch
        self._read = read
        self._heartbeat_seconds = heartbeat_seconds
        super().__init__(self._events(), headers=HEADERS)

    async def __call__(
        self,
        scope: Scope,  # noqa: ARG002 - ASGI's signature
        receive: Receive,
        send: Send,
    ) -> None:
        """Send the events; too many clients are refused before anything is sent."""
        with self._place():
            left = asyncio.ensure_future(client_leaves(receive))
            left.add_done_callback(lambda _: self._followed.end())
            try:
                # Some servers tell here that the client has left.
                with suppress(OSError):
                    await self.stream_response(send)
            finally:
                left.cancel()

    def _place(self) -> AbstractContextManager[None]:
        is_unfinished = self._followed.is_unfinished()
        return self._watch.streaming(self._followed) if is_unfinished else nullcontext()

    async def _events(self) -> AsyncIterator[bytes]:
        followed, shown = self._followed, None
        while (view := followed.view) is not None and followed.is_unfinished():
            yield HEARTBEAT if view == shown else _progress(view)
            shown = view
            await followed.wait(self._heartbeat_seconds)
            if followed.is_over:
                return
        if (whole := await self._whole()) is not None:
            yield _event("end", whole)

    async def _whole(self) -> BaseModel | None:
        """Return the resource of a job that has ended; None if there is no use any more."""
        while not self._followed.is_over:
            try:
                return await run_in_threadpool(self._read)
            except NotFound:
                return DeletedJob(id=self._followed.job.id)
            except Overloaded:
                # The database is away, though it was there a moment ago.
                await self._followed.wait(AGAIN_SECONDS)
        return None


def _progress(view: JobView) -> bytes:
    return _event("progress", JobEvent(status=view.status, progress=progress_of(view)))


def _event(name: str, content: BaseModel) -> bytes:
    data = content.model_dump_json()
    return format_sse_event(event=name, data_str=data, retry=RETRY_MILLISECONDS)


PREFER_HEADER = {
    "name": "Prefer",
    "in": "header",
    "schema": {"type": "string", "examples": ["wait=30"]},
    "description": "`wait=N`: wait up to N seconds for it to finish.",
}


Row = TypeVar("Row", models.Calibration, models.Evaluation)
Resource = TypeVar("Resource", bound=BaseModel)


def wait_seconds(request: Request) -> float:
    """Return how long the caller prefers to wait, up to the service's limit."""
    prefer = request.headers.get("prefer", "")
    found = re.search(r'(?:^|[\s,;])wait\s*=\s*"?(\d{1,6})', prefer, re.IGNORECASE)
    asked = float(found[1]) if found else 0.0
    return min(asked, float(request.app.state.max_wait_seconds))


async def answer_job(
    request: Request, response: Response, location: str, read: Callable[[], Row]
) -> Row:
    """Return the row of a job that was just accepted; fill in the status and the headers.

    Wait for its end as long as the caller prefers, or until the client or the service leaves.
    """
    seconds = wait_seconds(request)
    row = await run_in_threadpool(read)
    if seconds and not _is_finished(row):
        watch: JobWatch = request.app.state.job_watch
        followed = JobSubscription(FollowedJob(type(row), row.id), view_of(row))
        await watch.finished(followed, request.receive, seconds)
        row = await run_in_threadpool(read)
    response.headers["Location"] = location
    if seconds:
        response.headers["Preference-Applied"] = f"wait={seconds:g}"
    if _is_finished(row):
        response.status_code = HTTPStatus.CREATED
    return row


def _is_finished(row: models.Job) -> bool:
    return row.status not in models.UNFINISHED


def job_resource(kind: type[Resource], row: Row, **derived: object) -> Resource:
    """Return the resource of a job: its columns, its progress and what is derived from them."""
    derived["progress"] = progress_of(row)
    columns = {name: getattr(row, name) for name in kind.model_fields if name not in derived}
    return kind(**columns, **derived)
