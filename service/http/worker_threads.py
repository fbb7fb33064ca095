"""Separate threads for long work, so that short requests do not wait behind it."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar
from uuid import UUID

from anyio import CapacityLimiter, to_thread

from service.errors import Overloaded

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Lane:
    """Runs up to ``threads`` calls at a time in threads; ``queue`` more may wait.

    One tenant has at most all threads but one. Of the places a tenant may have as many as it leaves
    free for others.

    All calls must come from one event loop. ``waited`` gets the waiting time of each in seconds.
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
        self._inside_of: Counter[UUID] = Counter()
        self._limiters: dict[UUID, CapacityLimiter] = {}
        self._threads_of_one = max(threads - 1, 1)

    @property
    def running(self) -> int:
        """Number of running calls."""
        return self._limiter.borrowed_tokens

    @property
    def pending(self) -> int:
        """Number of waiting calls."""
        return max(self._inside - self.running, 0)

    async def run(
        self,
        tenant_id: UUID,
        call: Callable[Given, Result],
        *args: Given.args,
        **kwargs: Given.kwargs,
    ) -> Result:
        """Run the call of a tenant when its turn comes.

        Raises
        ------
        Overloaded
            If too many calls are waiting.
        """
        free, own = self._room - self._inside, self._inside_of[tenant_id]
        if not free or (own and own >= free):
            raise Overloaded(f"Too many {self._what} are waiting. Retry later.")
        queued = time.perf_counter()

        def begin() -> Result:
            self._waited((time.perf_counter() - queued,))
            return call(*args, **kwargs)

        limiter = self._limiters.setdefault(tenant_id, CapacityLimiter(self._threads_of_one))
        self._inside += 1
        self._inside_of[tenant_id] += 1
        try:
            async with limiter:
                return await to_thread.run_sync(begin, limiter=self._limiter)
        finally:
            self._inside -= 1
            self._inside_of[tenant_id] -= 1
            if not self._inside_of[tenant_id]:
                del self._inside_of[tenant_id], self._limiters[tenant_id]


@dataclass(frozen=True)
class Lanes:
    """The lanes of the service: sets sent to /predict, and checks of uploads."""

    sets: Lane
    upload: Lane
