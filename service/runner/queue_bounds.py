"""Limits of the requests that wait for all models together."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.errors import QueueShareTaken, TooManyRequests
from service.runner.predict_requests import BatchRequest

LONGEST_RETRY_SECONDS = 60
FIRST_RETRY_SECONDS = 5  # while nothing is known of the speed, as when the first model loads
# Time constant of the estimated rate of answers.
RATE_WINDOW_SECONDS = 1.0


@dataclass(eq=False, repr=False, kw_only=True)
class QueueBounds:
    """Counts rows that wait, and bytes until they are answered; refuses requests beyond a limit.

    One request may always wait, however large. A tenant may use at most as much shared space as
    is still free: a single tenant half of it, each of two tenants a third. ``waited`` receives the
    seconds that each request waited.
    """

    max_rows: int
    max_bytes: int
    waited: Callable[[float], None] = lambda _: None

    def __post_init__(self) -> None:
        self._rows = 0
        self._bytes = 0
        self._rate = 0.0
        self._last = 0.0

    def enter(self, request: BatchRequest) -> None:
        """Count a request that starts to wait.

        Raises
        ------
        TooManyRequests
            If the queue, or the tenant's share of it, is full; it has the seconds until a retry.
        """
        n_rows, n_bytes, share = self._rows_of(request), self._bytes_of(request), request.share
        rows, size = self._rows + n_rows, self._bytes + n_bytes
        too_long = self._rows and rows > self.max_rows
        if too_long or (self._bytes and size > self.max_bytes):
            raise TooManyRequests(
                f"The prediction queue is full: it holds {self._rows} rows and {self._bytes} "
                "bytes of requests. Try again later.",
                retry_after=self._retry_after(),
            )
        if share is not None:
            if (share.rows and share.rows + n_rows > self.max_rows - self._rows) or (
                share.bytes and share.bytes + n_bytes > self.max_bytes - self._bytes
            ):
                raise QueueShareTaken(
                    "This tenant's share of the prediction queue is full: it holds "
                    f"{share.rows} rows and {share.bytes} bytes of requests. Try again later.",
                    retry_after=self._retry_after(),
                )
            share.rows += n_rows
            share.bytes += n_bytes
        self._rows, self._bytes = rows, size

    def leave(self, requests: Sequence[BatchRequest], now: float) -> None:
        """Stop counting the rows of requests that wait no more; their bytes still count."""
        for request in requests:
            self._rows -= self._rows_of(request)
            if request.share is not None:
                request.share.rows -= self._rows_of(request)
        for request in requests:
            self.waited(now - request.arrived)

    def come_back(self, request: BatchRequest) -> None:
        """Count the rows of a request that waits again."""
        self._rows += self._rows_of(request)
        if request.share is not None:
            request.share.rows += self._rows_of(request)

    def end(self, request: BatchRequest) -> None:
        """Stop counting the bytes of a request that is over."""
        self._bytes -= self._bytes_of(request)
        if request.share is not None:
            request.share.bytes -= self._bytes_of(request)

    def served(self, n_rows: int, now: float) -> None:
        """Count answered rows, to estimate the rate of answers."""
        elapsed = now - self._last
        self._last = now
        keep = math.exp(-elapsed / RATE_WINDOW_SECONDS)
        self._rate = keep * self._rate + n_rows / RATE_WINDOW_SECONDS

    def _rows_of(self, request: BatchRequest) -> int:
        """Return the rows that a request counts as.

        A tenant's request counts at most as half of the queue: its number of rows is an estimate,
        and other tenants need room while it waits.
        """
        if request.share is None:
            return request.n_rows
        return min(request.n_rows, max(self.max_rows // 2, 1))

    def _bytes_of(self, request: BatchRequest) -> int:
        if request.share is None:
            return len(request.body)
        return min(len(request.body), max(self.max_bytes // 2, 1))

    def _retry_after(self) -> int:
        if self._rate == 0.0:
            return FIRST_RETRY_SECONDS
        seconds = math.ceil(self._rows / max(self._rate, 1.0))
        return min(max(seconds, 1), LONGEST_RETRY_SECONDS)
