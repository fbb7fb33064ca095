"""Progress of jobs: as part of their resources, as event streams, and for `Prefer: wait`."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import TypeAlias, TypeVar
from uuid import UUID

import structlog
from anyio import CapacityLimiter, to_thread
from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

import models
from models import UNFINISHED
from service.access.api_keys import CALLER, Caller
from service.errors import NotFound, Overloaded, TooManyRequests
from service.shared_amounts import SharedAmount
from service.storage.overview import FollowedJob, JobView, view_of

Job: TypeAlias = models.Calibration | models.Evaluation
Read = TypeVar("Read")
Row = TypeVar("Row", models.Calibration, models.Evaluation)


class Progress(BaseModel):
    """Progress of the current stage of a running job."""

    stage: str = Field(examples=["calibration"], description="The current stage.")
    done: int = Field(examples=[2560], description="Amount of the stage that is done.")
    total: int = Field(examples=[5000], description="Total amount; 0 if unknown.")
    rows_per_second: float | None = Field(
        examples=[1250.0],
        description="Rows (or other units of `done`) per second in the current stage, over the "
        "last 30 seconds of this attempt; null while unknown.",
    )
    eta_seconds: float | None = Field(
        examples=[1.95],
        description="Seconds until the end of the current stage at that rate, not until the end "
        "of the job; null while unknown.",
    )


def progress_of(job: Job | JobView) -> Progress | None:
    """Return the progress of a job; None unless it is running."""
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


PREFER_HEADER = {
    "name": "Prefer",
    "in": "header",
    "schema": {"type": "string", "examples": ["wait=30"]},
    "description": "`wait=N`: wait up to N seconds for it to finish.",
}
HEARTBEAT_SECONDS = 15.0
HEARTBEAT = b": nothing new\n\n"
# Delay before a browser reconnects.
RETRY_MILLISECONDS = 2000
AGAIN_SECONDS = 1.0
HEADERS = {
    "Cache-Control": "no-store",
    # Without it some proxies buffer the whole response.
    "X-Accel-Buffering": "no",
}


class JobEvent(BaseModel):
    """Data of a `progress` event."""

    status: models.JobStatus = Field(description="Status of the job.")
    progress: Progress | None = Field(description="Progress of a running job; null otherwise.")


class DeletedJob(BaseModel):
    """Data of the `end` event of a deleted job."""

    id: UUID = Field(description="Id of the deleted job.")
    status: str = Field("deleted", description="Always `deleted`; no job has this status.")


class EventStream(StreamingResponse):
    """Sends the progress of a job to one client whenever it changes, and then its end.

    It holds no thread, and gives its place back as soon as the client leaves. If the service
    stops, the stream ends without a last event, and the client can reconnect.

    Parameters
    ----------
    subscription : JobSubscription
    watch : JobWatch
        Limits the number of streams of each tenant; a finished job needs no place.
    tenant_id : UUID
    read : callable
        Returns the whole resource by its id; called in a thread once the job has finished.
    """

    # Not FastAPI's own class: routes take that as the mark of a generator, which would keep its
    # place until the next event and could not be refused any more.
    media_type = "text/event-stream"

    def __init__(
        self,
        subscription: JobSubscription,
        watch: JobWatch,
        tenant_id: UUID,
        read: Callable[[], BaseModel],
        *,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        self._subscription = subscription
        self._watch = watch
        self._tenant_id = tenant_id
        self._read = read
        self._heartbeat_seconds = heartbeat_seconds
        super().__init__(self._events(), headers=HEADERS)

    async def __call__(
        self,
        scope: Scope,  # noqa: ARG002 - ASGI's signature
        receive: Receive,
        send: Send,
    ) -> None:
        """Send the events; one stream too many is refused before anything is sent."""
        # Some servers raise OSError once the client has left.
        with self._place(), self._subscription.closed_by(receive), suppress(OSError):
            await self.stream_response(send)

    def _place(self) -> AbstractContextManager[None]:
        if not self._subscription.is_unfinished():
            return nullcontext()
        return self._watch.streaming(self._subscription, self._tenant_id)

    async def _events(self) -> AsyncIterator[bytes]:
        subscription, sent = self._subscription, None
        while (view := subscription.view) is not None and subscription.is_unfinished():
            yield HEARTBEAT if view == sent else _progress(view)
            sent = view
            await subscription.wait(self._heartbeat_seconds)
            if subscription.closed:
                return
        if (resource := await self._resource()) is not None:
            yield _event("end", resource)

    async def _resource(self) -> BaseModel | None:
        """Return the resource of a finished job; None if the subscription has been closed."""
        while not self._subscription.closed:
            try:
                return await self._watch.read_in_turn(self._read)
            except NotFound:
                return DeletedJob(id=self._subscription.job.id)
            except Overloaded:
                # The database has become unavailable.
                await self._subscription.wait(AGAIN_SECONDS)
        return None


@lru_cache(maxsize=256)  # one job may have a thousand streams
def _progress(view: JobView) -> bytes:
    return _event("progress", JobEvent(status=view.status, progress=progress_of(view)))


def _event(name: str, content: BaseModel) -> bytes:
    data = content.model_dump_json()
    return format_sse_event(event=name, data_str=data, retry=RETRY_MILLISECONDS)


Resource = TypeVar("Resource", bound=BaseModel)


async def answer_job(
    request: Request, response: Response, watch: JobWatch, location: str, read: Callable[[], Row]
) -> Row:
    """Return the row of a job that was just accepted; set the status and the headers.

    With `Prefer: wait` it waits for the end of the job.
    """
    row, seconds = await watch.wait_until_finished(request, read)
    response.headers["Location"] = location
    if seconds:
        response.headers["Preference-Applied"] = f"wait={seconds:g}"
    if is_finished(row):
        response.status_code = HTTPStatus.CREATED
    return row


def job_resource(kind: type[Resource], row: Row, **derived: object) -> Resource:
    """Return the resource of a job: its columns, its progress and what is derived from them."""
    derived["progress"] = progress_of(row)
    columns = {name: getattr(row, name) for name in kind.model_fields if name not in derived}
    return kind(**columns, **derived)
