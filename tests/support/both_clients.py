"""The two clients with one face, so that a test asks either."""

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from howsure.client import AsyncClient, Client

KINDS = ("sync", "async")


class Awaited:
    """An `AsyncClient` whose methods are waited for on a loop of its own."""

    def __init__(self, client: AsyncClient, runner: asyncio.Runner) -> None:
        self._client = client
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        assert inspect.iscoroutinefunction(method), name
        return lambda *args, **kwargs: self._runner.run(method(*args, **kwargs))


@contextmanager
def client_of(kind: str, url: str, **options: Any) -> Iterator[Any]:
    """Yield a client of either kind."""
    if kind == "sync":
        with Client(url, **options) as client:
            yield client
        return
    with asyncio.Runner() as runner:
        made = AsyncClient(url, **options)
        yield Awaited(made, runner)
        runner.run(made.close())
