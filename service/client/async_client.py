"""The client for programs of asyncio."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import wraps
from typing import Concatenate, ParamSpec, Self, TypeVar

import httpx

from service.client.connection import RETRIES, TIMEOUT_SECONDS, headers_of, url_of
from service.client.request import Answer
from service.client.steps import (
    CloseLines,
    NextLine,
    OpenLines,
    Send,
    Sleep,
    Step,
    Steps,
    shown_signature,
)
from service.client.uses import Uses

P = ParamSpec("P")
T = TypeVar("T")


def _awaits(
    use: Callable[Concatenate[Uses, P], Steps[T]],
) -> Callable[Concatenate["AsyncClient", P], Awaitable[T]]:
    """Make a method of the steps of a use."""

    @wraps(use)
    async def method(client: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await client._take(use(client._uses, *args, **kwargs))  # noqa: SLF001 - its own

    setattr(method, "__signature__", shown_signature(use))  # noqa: B010 - no type knows of it
    return method


class AsyncClient:
    """A running service, as a program of asyncio uses it; several tasks may share one.

    Its methods are those of `Client`, awaited. Files that are sent are read in small pieces on the
    event loop.

    Parameters
    ----------
    url, api_key, timeout, retries
        As of `Client`.
    http
        A client of your own to send by, the key too; it stays open.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float | None = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._uses = Uses(retries=retries)
        self._timeout = timeout
        self._owned = None
        if http is None:
            self._owned = httpx.AsyncClient(base_url=url_of(url), headers=headers_of(api_key))
        self._http = self._owned or http or httpx.AsyncClient()

    calibrate = _awaits(Uses.calibrate)
    dry_run = _awaits(Uses.dry_run)
    wait = _awaits(Uses.wait)
    predict = _awaits(Uses.predict)
    get = _awaits(Uses.get)
    calibrations = _awaits(Uses.calibrations)
    report = _awaits(Uses.report)
    report_text = _awaits(Uses.report_text)
    bins = _awaits(Uses.bins)
    export = _awaits(Uses.export)
    evaluate = _awaits(Uses.evaluate)
    refit = _awaits(Uses.refit)
    promote = _awaits(Uses.promote)
    cancel = _awaits(Uses.cancel)
    delete = _awaits(Uses.delete)

    async def close(self) -> None:
        """Let go of the connections."""
        if self._owned is not None:
            await self._owned.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _take(self, steps: Steps[T]) -> T:
        """Take one step after the other; what a step raises is the steps' to handle."""
        async with AsyncExitStack() as streams:
            taker = _Taker(self._http, self._timeout, streams)
            came: object = None
            raised: BaseException | None = None
            while True:
                try:
                    step = steps.send(came) if raised is None else steps.throw(raised)
                except StopIteration as end:
                    result: T = end.value
                    return result
                came = raised = None
                try:
                    came = await taker(step)
                except GeneratorExit:
                    steps.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - handed to the steps
                    raised = error


class _Taker:
    """Takes steps; holds the answer whose lines are read."""

    def __init__(
        self, http: httpx.AsyncClient, timeout: float | None, streams: AsyncExitStack
    ) -> None:
        self._http = http
        self._timeout = timeout
        self._streams = streams
        self._lines: AsyncIterator[str] | None = None

    async def __call__(self, step: Step) -> object:
        match step:
            case Send():
                return await self._send(step)
            case Sleep():
                await asyncio.sleep(step.seconds)
            case OpenLines():
                return await self._open(step)
            case NextLine():
                return None if self._lines is None else await anext(self._lines, None)
            case CloseLines():
                await self._streams.aclose()
        return None

    async def _send(self, step: Send) -> Answer:
        async with self._http.stream(**step.request.as_arguments(self._timeout)) as response:
            if step.into is None or response.status_code != httpx.codes.OK:
                return Answer(response.status_code, response.headers, await response.aread())
            step.into.seek(0)
            step.into.truncate()
            async for chunk in response.aiter_bytes():
                step.into.write(chunk)
            return Answer(response.status_code, response.headers, b"")

    async def _open(self, step: OpenLines) -> Answer:
        arguments = step.request.as_arguments(step.silence)
        response = await self._streams.enter_async_context(self._http.stream(**arguments))
        self._lines = response.aiter_lines()
        return Answer(response.status_code, response.headers, b"")
