"""Limits of the requests that wait for all models together."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.errors import TooManyRequests
from service.runner.predict_requests import BatchRequest
from service.shared_amounts import Line, SharedAmount

LONGEST_RETRY_SECONDS = 60
FIRST_RETRY_SECONDS = 5  # while nothing is known of the speed, as when the first model loads
# Time constant of the estimated rate of answers.
RATE_WINDOW_SECONDS = 1.0


@dataclass(eq=False, repr=False, kw_only=True)
class QueueBounds:
    """Counts rows that wait, and bytes until they are answered; refuses requests beyond a limit.

    ``waited`` receives the seconds that each request waited.
    """

    max_rows: int
    max_bytes: int
    waited: Callable[[float], None] = lambda _: None

    def __post_init__(self) -> None:
        self.rows = SharedAmount(Line.QUEUED_ROWS, self.max_rows, self._retry_after)
        self.bytes = SharedAmount(Line.QUEUED_BYTES, self.max_bytes, self._retry_after)
        self._rate = 0.0
        self._last = 0.0

    def enter(self, request: BatchRequest) -> None:
        """Count a request that starts to wait.

        Raises
        ------
        ShareTaken, TooManyRequests
            If the queue, or the tenant's share of it, is full; it has the seconds until a retry.
        """
        self.rows.take(request.holder, request.n_rows)
        try:
            self.bytes.take(request.holder, len(request.body))
        except TooManyRequests:
            self.rows.give_back(request.holder, request.n_rows)
            raise

    def leave(self, requests: Sequence[BatchRequest], now: float) -> None:
        """Stop counting the rows of requests that wait no more; their bytes still count."""
        for request in requests:
            self.rows.give_back(request.holder, request.n_rows)
        for request in requests:
            self.waited(now - request.arrived)

    def come_back(self, request: BatchRequest) -> None:
        """Count the rows of a request that waits again."""
        self.rows.count(request.holder, request.n_rows)

    def end(self, request: BatchRequest) -> None:
        """Stop counting the bytes of a request that is over."""
        self.bytes.give_back(request.holder, len(request.body))

    def served(self, n_rows: int, now: float) -> None:
        """Count answered rows, to estimate the rate of answers."""
        elapsed = now - self._last
        self._last = now
        keep = math.exp(-elapsed / RATE_WINDOW_SECONDS)
        self._rate = keep * self._rate + n_rows / RATE_WINDOW_SECONDS

    def _retry_after(self) -> int:
        if self._rate == 0.0:
            return FIRST_RETRY_SECONDS
        seconds = math.ceil(self.rows.taken / max(self._rate, 1.0))
        return min(max(seconds, 1), LONGEST_RETRY_SECONDS)
