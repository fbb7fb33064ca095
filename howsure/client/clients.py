"""The two clients: the same methods, asynchronous or blocking."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx

from howsure.client.methods import Methods
from howsure.client.transport import (
    RETRIES,
    TIMEOUT_SECONDS,
    AsyncTransport,
    BlockingTransport,
    opened,
    run_blocking,
)

P = ParamSpec("P")
T = TypeVar("T")


class AsyncClient(Methods):
    """A client for asyncio; several tasks may share one.

    It has the methods of `Client` as coroutines. It reads uploaded files in small pieces on the
    event loop.

    Parameters
    ----------
    url, api_key, timeout, retries
        As in `Client`.
    http
        Your own httpx client, which also sends the API key; it stays open.
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
        http, self._owned = opened(httpx.AsyncClient, http, url, api_key)
        super().__init__(AsyncTransport(http), timeout, retries)

    async def close(self) -> None:
        """Close the connections."""
        if self._owned is not None:
            await self._owned.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _waits(
    use: Callable[Concatenate[Methods, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Client", P], T]:
    """Turn a coroutine method into a blocking one."""

    @wraps(use)
    def method(client: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run_blocking(use(client._methods, *args, **kwargs))  # noqa: SLF001 - its own method

    return method


class Client:
    """A blocking client; several threads may share one.

    Parameters
    ----------
    url
        Address of the service; by default ``HOWSURE_URL``, else ``http://127.0.0.1:8000``.
    api_key
        API key; by default ``HOWSURE_API_KEY``, else none is sent.
    timeout
        Maximum seconds between parts of a response; checks of uploads may take longer.
    retries
        Number of retries if there is no connection or the service is overloaded.
    http
        Your own httpx client, for proxies or certificates, which also sends the API key; it
        stays open.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float | None = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        http: httpx.Client | None = None,
    ) -> None:
        http, self._owned = opened(httpx.Client, http, url, api_key)
        self._methods = Methods(BlockingTransport(http), timeout, retries)

    calibrate = _waits(Methods.calibrate)
    dry_run = _waits(Methods.dry_run)
    wait = _waits(Methods.wait)
    predict = _waits(Methods.predict)
    get = _waits(Methods.get)
    calibrations = _waits(Methods.calibrations)
    report = _waits(Methods.report)
    report_text = _waits(Methods.report_text)
    bins = _waits(Methods.bins)
    import_bins = _waits(Methods.import_bins)
    export = _waits(Methods.export)
    evaluate = _waits(Methods.evaluate)
    evaluations = _waits(Methods.evaluations)
    refit = _waits(Methods.refit)
    promote = _waits(Methods.promote)
    preview_operating_point = _waits(Methods.preview_operating_point)
    activate_operating_point = _waits(Methods.activate_operating_point)
    withdraw_operating_point = _waits(Methods.withdraw_operating_point)
    operating_points = _waits(Methods.operating_points)
    cancel = _waits(Methods.cancel)
    delete = _waits(Methods.delete)

    def close(self) -> None:
        """Close the connections."""
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
