"""Waiting for a job: by the events that the service sends, else by asking now and then."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeAlias

import httpx

from service.client.calibration import FINISHED, Progress
from service.client.errors import HowsureError
from service.client.request import Request
from service.client.retrying import asked
from service.client.steps import CloseLines, OpenLines, Sleep, Steps, line, sent

FIRST_SECONDS = 0.1
MOST_SECONDS = 2.0
# Three comments that did not come.
SILENCE_SECONDS = 45.0
INTERRUPTS = (KeyboardInterrupt, asyncio.CancelledError)

Resource: TypeAlias = Mapping[str, Any]
OnProgress: TypeAlias = Callable[[Progress], None] | None


@dataclass(frozen=True)
class Following:
    """How a job is waited for.

    Attributes
    ----------
    seconds
        At most so long, None for as long as it takes.
    on_progress
        Called whenever something has changed.
    cancel_on_interrupt
        Whether Ctrl-C, or the end of the task that waits, cancels the job.
    """

    seconds: float | None = None
    on_progress: OnProgress = None
    cancel_on_interrupt: bool = False


def followed(address: str, resource: Resource, how: Following, *, retries: int) -> Steps[Resource]:
    """Wait until the job at ``address`` ends, or time is over, and return its resource."""
    try:
        return (yield from _followed(address, resource, how, retries))
    except INTERRUPTS:
        if how.cancel_on_interrupt:
            yield from sent(Request("POST", f"{address}/cancel"))
        raise


def _followed(address: str, resource: Resource, how: Following, retries: int) -> Steps[Resource]:
    tell = _Telling(how.on_progress)
    tell(resource)
    until = None if how.seconds is None else time.monotonic() + how.seconds
    # A stream cannot be left in the middle of its silence.
    streams, pause = until is None, FIRST_SECONDS
    while resource["status"] not in FINISHED:
        if streams:
            ended, streams = yield from _streamed(address, tell)
            if ended is not None:
                return ended
        if until is not None and time.monotonic() >= until:
            return resource
        yield Sleep(pause if until is None else max(0.0, min(pause, until - time.monotonic())))
        pause = min(2 * pause, MOST_SECONDS)
        answer = yield from asked(Request("GET", address), retries=retries)
        resource = answer.json()
        tell(resource)
    return resource


def _streamed(address: str, tell: "_Telling") -> Steps[tuple[Resource | None, bool]]:
    """Read events; return the resource at the end, and whether a stream is worth another try."""
    request = Request("GET", f"{address}/events", headers={"Accept": "text/event-stream"})
    try:
        opened = yield OpenLines(request, SILENCE_SECONDS)
        if opened.status != HTTPStatus.OK:
            return None, False
        event: dict[str, str] = {}
        while (found := (yield from line())) is not None:
            if found:
                name, _, value = found.partition(":")
                event[name] = value.removeprefix(" ")
                continue
            told = json.loads(event["data"]) if "data" in event else None
            if told is not None and event.get("event") == "end":
                return _existing(told), True
            if told is not None:
                tell(told)
            event = {}
    except (httpx.TransportError, ValueError):
        pass
    finally:
        yield CloseLines()
    return None, True


def _existing(told: Resource) -> Resource:
    if told["status"] == "deleted":
        raise HowsureError("Not found", "it was deleted meanwhile", status=HTTPStatus.NOT_FOUND)
    return told


class _Telling:
    """Tells what has changed, once."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self._told: Progress | None = None

    def __call__(self, resource: Resource) -> None:
        found = Progress.of(resource)
        if self._on_progress is not None and found != self._told:
            self._on_progress(found)
        self._told = found
