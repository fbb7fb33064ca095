"""Progress of jobs: as part of their resources, as event streams, and for `Prefer: wait`."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import lru_cache
from http import HTTPStatus
from typing import TypeVar
from uuid import UUID

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event
from pydantic import BaseModel, Field
from starlette.types import Receive, Scope, Send

import models
from service.errors import NotFound, Overloaded
from service.http.job_watch import Job, JobSubscription, JobWatch, Row, is_finished
from service.storage.overview import JobView


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
