"""Separate threads for long work, so that short requests do not wait behind it."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

from service.errors import Overloaded

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Lane:
    """Runs up to ``threads`` calls at a time, each in a thread; ``queue`` more may wait.

    All calls come from one event loop. ``waited`` is told the seconds that each had to wait.
    """

    def __init__(
        self,
        what: str,
        *,
        threads: int,
        queue: int,
        waited: Callable[[Iterable[float]], None] = lambda _: None,
    ) -> None:
        self._waited = waited
        self._what = what
        self._limiter = CapacityLimiter(threads)
        self._room = threads + queue
        self._inside = 0

    @property
    def running(self) -> int:
        """How many calls have a thread."""
        return self._limiter.borrowed_tokens

    @property
    def pending(self) -> int:
        """How many calls wait for one."""
        return max(self._inside - self.running, 0)

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
            raise Overloaded(f"Too many {self._what} are waiting. Retry later.")
        queued = time.perf_counter()

        def begin() -> Result:
            self._waited((time.perf_counter() - queued,))
            return call(*args, **kwargs)

        self._inside += 1
        try:
            return await to_thread.run_sync(begin, limiter=self._limiter)
        finally:
            self._inside -= 1


@dataclass(frozen=True)
class Lanes:
    """The lanes of the service: sets that are sent to /predict, and checks of received uploads."""

    sets: Lane
    upload: Lane
