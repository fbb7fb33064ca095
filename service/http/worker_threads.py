"""Separate threads for long work, so that short requests do not wait behind it."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import ParamSpec, TypeVar
from uuid import UUID
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, move_on_after, to_thread

from service.shared_amounts import Line, SharedAmount

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Lane:
    """Runs up to ``threads`` calls at a time in threads; ``queue`` more may wait.

    Calls of one tenant use all threads but one.

    All calls must come from one event loop. ``waited`` gets the waiting time of each in seconds.
    """

    def __init__(
        self,
        line: Line,
        *,
        threads: int,
        queue: float,
        waited: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._waited = waited
        self._limiter = CapacityLimiter(threads)
        self.places = SharedAmount(line, threads + queue)
        # One for each tenant that has calls.
        self._limiters: WeakValueDictionary[UUID, CapacityLimiter] = WeakValueDictionary()
        self._threads_of_one = max(threads - 1, 1)

    @asynccontextmanager
    async def paused(self, seconds: float) -> AsyncIterator[None]:
        """Begin no call until the block ends.

        The block begins when no call is running, or after ``seconds``.
        """
        borrowers = [object() for _ in range(int(self._limiter.total_tokens))]
        try:
            with move_on_after(seconds):
                for borrower in borrowers:
                    await self._limiter.acquire_on_behalf_of(borrower)
            yield
        finally:
            for borrower in borrowers:
                with suppress(RuntimeError):  # it was not acquired in time
                    self._limiter.release_on_behalf_of(borrower)

    @property
    def running(self) -> int:
        """Number of running calls."""
        return self._limiter.borrowed_tokens

    @property
    def pending(self) -> int:
        """Number of waiting calls."""
        return max(self.places.taken - self.running, 0)

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
        ShareTaken, TooManyRequests
            If too many calls are waiting.
        """
        queued = time.perf_counter()

        def begin() -> Result:
            self._waited(time.perf_counter() - queued)
            return call(*args, **kwargs)

        limiter = self._limiters.setdefault(tenant_id, CapacityLimiter(self._threads_of_one))
        with self.places.held(tenant_id):
            async with limiter:
                return await to_thread.run_sync(begin, limiter=self._limiter)


@dataclass(frozen=True)
class Lanes:
    """The lanes of the service.

    ``sets`` reads sets sent to /predict, ``upload`` checks uploads, ``answers`` writes large
    responses of predictions, ``documents`` collects,
    compares, draws, writes and imports results of calibrations.
    """

    sets: Lane
    answers: Lane
    upload: Lane
    documents: Lane
