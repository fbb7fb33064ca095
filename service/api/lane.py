"""Threads of its own for work that takes long, so that short requests never wait behind it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

from service.errors import Overloaded

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Lane:
    """Runs up to ``threads`` calls at a time, each in a thread; ``queue`` more may wait.

    All calls come from one event loop.
    """

    def __init__(self, what: str, *, threads: int, queue: int) -> None:
        self._what = what
        self._limiter = CapacityLimiter(threads)
        self._room = threads + queue
        self._inside = 0

    async def run(
        self, call: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
    ) -> Result:
        """Run the call when its turn comes.

        Raises
        ------
        Overloaded
            If as many wait already as may.
        """
        if self._inside >= self._room:
            raise Overloaded(f"Too many {self._what} wait already; try again.")
        self._inside += 1
        try:
            return await to_thread.run_sync(lambda: call(*args, **kwargs), limiter=self._limiter)
        finally:
            self._inside -= 1


@dataclass(frozen=True)
class Lanes:
    """The lanes of the service: answers to /predict, and checks of received uploads."""

    predict: Lane
    upload: Lane
