"""``Prefer: wait=N``: answer when the work is done, or after N seconds."""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from fastapi import Request
from starlette.concurrency import run_in_threadpool

import models

FIRST_POLL_SECONDS = 0.02
LAST_POLL_SECONDS = 0.5

PREFER_HEADER = {
    "name": "Prefer",
    "in": "header",
    "schema": {"type": "string", "examples": ["wait=30"]},
    "description": "`wait=N`: wait up to N seconds for it to finish.",
}


class HasStatus(Protocol):
    """A row that is a job."""

    @property
    def status(self) -> models.JobStatus:
        """Where the job stands."""


Row = TypeVar("Row", bound=HasStatus)


def wait_seconds(request: Request) -> float:
    """Return how long the caller prefers to wait, up to the service's limit."""
    prefer = request.headers.get("prefer", "")
    found = re.search(r'(?:^|[\s,;])wait\s*=\s*"?(\d{1,6})', prefer, re.IGNORECASE)
    asked = float(found[1]) if found else 0.0
    return min(asked, float(request.app.state.max_wait_seconds))


def is_finished(row: HasStatus) -> bool:
    """Tell whether the job has ended, however it did."""
    return row.status not in models.UNFINISHED


async def wait_until_finished(request: Request, read: Callable[[], Row], seconds: float) -> Row:
    """Read the row until its job has ended, the time is up, the client or the service leaves."""
    loop = asyncio.get_running_loop()
    stopping: asyncio.Event = request.app.state.stopping
    until, pause = loop.time() + seconds, FIRST_POLL_SECONDS
    while True:
        is_last = stopping.is_set()
        row = await run_in_threadpool(read)
        left = until - loop.time()
        if is_finished(row) or is_last or left <= 0 or await request.is_disconnected():
            return row
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), min(pause, left))
        pause = min(pause * 1.5, LAST_POLL_SECONDS)
