"""Progress of one job as server-sent events, until it ends."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from uuid import UUID

from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

import models
from service.api.job_progress import Progress, progress_of
from service.api.job_watch import Following, JobWatch
from service.api.waiting import is_finished
from service.errors import NotFound, Overloaded
from service.storage.job_views import JobView

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
        followed: Following,
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
            left = asyncio.ensure_future(_client_leaves(receive))
            left.add_done_callback(lambda _: self._followed.end())
            try:
                # Some servers tell here that the client has left.
                with suppress(OSError):
                    await self.stream_response(send)
            finally:
                left.cancel()

    def _place(self) -> AbstractContextManager[None]:
        view = self._followed.view
        has_ended = view is None or is_finished(view)
        return nullcontext() if has_ended else self._watch.following(self._followed)

    async def _events(self) -> AsyncIterator[bytes]:
        followed, shown = self._followed, None
        while (view := followed.view) is not None and not is_finished(view):
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


async def _client_leaves(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
