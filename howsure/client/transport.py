"""Sending of requests: on an event loop, or in a blocking thread.

Both clients run the same coroutines. The blocking transport never suspends, so a single step runs
a coroutine to its end without an event loop.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from random import SystemRandom
from typing import IO, Any, Generic, Self, TypeAlias, TypeVar
from uuid import uuid4

import httpx

from howsure.client.errors import OUTCOME_UNKNOWN, HowsureError, ServiceUnreachable, error_of
from howsure.client.request import Answer, Request

DEFAULT_URL = "http://127.0.0.1:8000"
TIMEOUT_SECONDS = 60.0
RETRIES = 5
# The largest response that is read into memory, and into a file. After the timeout, a response that
# arrives more slowly than the least is given up.
MOST_BYTES, MOST_FILE_BYTES = 2**28, 2**36
LEAST_BYTES_A_SECOND = 1024
UNBOUNDED = "the response of the service goes beyond the limit of {}: is it a Howsure service?"
WITHHELD = "howsure-withheld"
NOT_READ = "the service made {}; this API key lacks the scope `read`, which shows more"


def url_of(given: str | None) -> str:
    """Return the service's address: the argument, ``HOWSURE_URL``, or this machine's.

    Raises
    ------
    ValueError
        If it is no address of HTTP.
    """
    url = given or os.environ.get("HOWSURE_URL") or DEFAULT_URL
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"url: expected an address such as {DEFAULT_URL}, got {url!r}")
    return url


def headers_of(api_key: str | None) -> dict[str, str]:
    """Return the header with the API key: the argument or ``HOWSURE_API_KEY``; empty if neither."""
    found = api_key or os.environ.get("HOWSURE_API_KEY")
    return {"Authorization": f"Bearer {found}"} if found else {}


T = TypeVar("T")
Http = TypeVar("Http", httpx.Client, httpx.AsyncClient)


def opened(
    kind: type[Http], own: Http | None, url: str | None, api_key: str | None
) -> tuple[Http, Http | None]:
    """Return the caller's client of httpx, or a new one, and the one to close, if it is new.

    Raises
    ------
    ValueError
        If there is an address or a key beside the caller's client, which has its own.
    """
    if own is None:
        new = kind(base_url=url_of(url), headers=headers_of(api_key))
        return new, new
    if url is not None or api_key is not None:
        raise ValueError("http: it has its own address and headers; leave out url and api_key")
    return own, None


class AsyncTransport:
    """Sends on the event loop."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    def stream(self, arguments: Mapping[str, Any]) -> AbstractAsyncContextManager[httpx.Response]:
        """Send a request, given as `httpx.Client.stream` takes it."""
        return self._http.stream(**arguments)

    async def sleep(self, seconds: float) -> None:
        """Pause without blocking other tasks."""
        await asyncio.sleep(seconds)


class BlockingTransport:
    """Blocks the thread; its coroutines never suspend."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    @asynccontextmanager
    async def stream(self, arguments: Mapping[str, Any]) -> AsyncIterator["_BlockingResponse"]:
        """Send a request."""
        with self._http.stream(**arguments) as response:
            yield _BlockingResponse(response)

    async def sleep(self, seconds: float) -> None:
        """Pause the thread."""
        time.sleep(seconds)  # noqa: ASYNC251 - no event loop runs this


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that uses a blocking transport, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("the coroutine waits for an event loop")


class _BlockingResponse:
    """A response with the methods of `httpx.Response` that `Sender` awaits."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.status_code = response.status_code
        self.headers: Mapping[str, str] = response.headers

    async def aread(self) -> bytes:
        return self._response.read()

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        return _Blocking(self._response.iter_bytes())


class _Blocking(Generic[T]):
    """An iterator for ``async for``. Not a generator, which only an event loop could close."""

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        for item in self._items:
            return item
        raise StopAsyncIteration


Transport: TypeAlias = AsyncTransport | BlockingTransport
PAGE = 200  # items, the most of a list
FIRST_SECONDS = 0.25
MOST_SECONDS = 10.0
# The client gives up if the service asks for a longer pause.
MOST_RETRY_AFTER_SECONDS = 120.0
LATER = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
# From a proxy whose service has just gone: the outcome of the request is unknown.
LOST = frozenset({HTTPStatus.BAD_GATEWAY})
# Nothing was sent yet.
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

_random = SystemRandom()


@dataclass(frozen=True)
class Sender:
    """Sends requests over a transport, with up to ``retries`` repetitions."""

    transport: Transport
    timeout: float | None
    retries: int

    async def send(self, request: Request, into: IO[bytes] | None = None) -> Answer:
        """Send a request, retry it if that may help, and return an answer below 400.

        A request is retried if no connection was made, or after 429 or 503; a repeatable one also
        after a broken connection. Pauses start at a quarter of a second and double. They are
        shortened at random, so that clients do not return all at once, but not below
        ``Retry-After``. The body of a 200 is written to ``into``, from its beginning.

        Raises
        ------
        HowsureError
            If the service refuses, or did it and the key may not read what it made.
        ServiceUnreachable
            If no response came.
        """
        for attempt in range(self.retries + 1):
            try:
                answer = await self.send_once(request, into)
            except httpx.TransportError as error:
                may_help = request.repeatable or isinstance(error, NEVER_SENT)
                if attempt == self.retries or not may_help:
                    raise _unreachable(error, attempt + 1) from error
                await self.transport.sleep(_pause(attempt))
                continue
            if answer.status < HTTPStatus.BAD_REQUEST:
                if WITHHELD in answer.headers:
                    made = ", ".join(f"{name} {value}" for name, value in answer.json().items())
                    raise HowsureError("Done", NOT_READ.format(made), status=answer.status)
                return answer
            refusal = error_of(answer)
            after = _retry_after(answer)
            if attempt == self.retries or not _may_help(request, refusal) or after is None:
                raise refusal
            await self.transport.sleep(max(after, _pause(attempt)))
        raise AssertionError("the last attempt returns or raises")

    async def listed(
        self, path: str, key: str, limit: int | None = None, **params: str | None
    ) -> list[dict[str, Any]]:
        """Return the items of a list that has pages: all, or at most ``limit``."""
        items: list[dict[str, Any]] = []
        cursor = None
        while limit is None or len(items) < limit:
            size = PAGE if limit is None else min(PAGE, limit - len(items))
            query = {**params, "cursor": cursor, "limit": size}
            page = (await self.send(Request("GET", path, query))).json()
            items += page[key]
            cursor = page.get("next_cursor")
            if cursor is None:
                break
        return items

    async def download(self, request: Request, to: Path | None) -> tuple[Path, Answer]:
        """Write a body to a file, by default under the name that the service gives it."""
        # The file gets its name once it is complete.
        unfinished = Path(f"{uuid4()}.part") if to is None else to.with_name(f"{to.name}.part")
        try:
            with unfinished.open("wb") as file:
                answer = await self.send(request, into=file)
            path = answer.new_file(".onnx") if to is None else to
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        return path, answer

    async def send_once(self, request: Request, into: IO[bytes] | None = None) -> Answer:
        """Send a request once, and return the response whatever its status."""
        async with self.transport.stream(request.as_arguments(self.timeout)) as response:
            is_file = into is not None and response.status_code == httpx.codes.OK
            content = into if into is not None and is_file else BytesIO()
            content.seek(0)
            content.truncate()
            most = MOST_FILE_BYTES if is_file else MOST_BYTES
            size, began = 0, time.monotonic()
            async for chunk in response.aiter_bytes():
                size += len(chunk)
                least = self.timeout or TIMEOUT_SECONDS
                if size > most or time.monotonic() - began > least + size / LEAST_BYTES_A_SECOND:
                    limit = f"{most} bytes" if size > most else f"{LEAST_BYTES_A_SECOND} bytes/s"
                    raise HowsureError("Unexpected answer", UNBOUNDED.format(limit))
                content.write(chunk)
            content.seek(0)
            body = b"" if is_file else content.read()
            return Answer(response.status_code, response.headers, body)


def _may_help(request: Request, refusal: HowsureError) -> bool:
    if refusal.status in LATER:
        return request.repeatable or refusal.type != OUTCOME_UNKNOWN
    return refusal.status in LOST and request.repeatable


def _pause(attempt: int) -> float:
    longest = min(MOST_SECONDS, FIRST_SECONDS * 2**attempt)
    return _random.uniform(longest / 2, longest)


def _retry_after(answer: Answer) -> float | None:
    """Return the requested pause in seconds; None if it is too long, 0 for a date."""
    try:
        seconds = float(answer.headers.get("retry-after", "0"))
    except ValueError:
        return 0.0
    return max(seconds, 0.0) if seconds <= MOST_RETRY_AFTER_SECONDS else None


def _unreachable(error: httpx.TransportError, attempts: int) -> ServiceUnreachable:
    tried = "once" if attempts == 1 else f"{attempts} times"
    reason = str(error) or type(error).__name__
    address = address_asked(error) or "the service"
    return ServiceUnreachable("No answer", f"{address} was asked {tried}: {reason}")


def address_asked(error: httpx.TransportError) -> str | None:
    """Return the address that a failed request was sent to, without credentials."""
    try:
        url = error.request.url
    except RuntimeError:  # the failure is about no request
        return None
    return f"{url.scheme}://{url.netloc.decode('ascii')}"
