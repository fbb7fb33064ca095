"""How much may wait for all models together, and when it is worth coming again."""

import math
from collections.abc import Callable, Iterable, Sequence

from service.errors import QueueShareTaken, TooManyRequests
from service.runner.predict_requests import BatchRequest

LONGEST_RETRY_SECONDS = 60
# Of the rate of answers, how much the last second counts.
RATE_WINDOW_SECONDS = 1.0


class QueueBounds:
    """Counts rows that wait, and bytes until they are answered; refuses more than may be.

    One request may always wait, however large it is. Where several share the room, each may have as
    much as it leaves free: one alone half of it, of two a third each, and whoever comes next finds
    room. ``waited`` is told the seconds of each.
    """

    def __init__(
        self,
        *,
        max_rows: int,
        max_bytes: int,
        waited: Callable[[Iterable[float]], None] = lambda _: None,
    ) -> None:
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._waited = waited
        self._rows = 0
        self._bytes = 0
        self._rate = 0.0
        self._last = 0.0

    def enter(self, request: BatchRequest) -> None:
        """Count a request that begins to wait.

        Raises
        ------
        TooManyRequests
            If there is no room for it; it says after how many seconds there may be.
        """
        n_rows, n_bytes, share = self._rows_of(request), self._bytes_of(request), request.share
        rows, size = self._rows + n_rows, self._bytes + n_bytes
        too_long = self._rows and rows > self._max_rows
        if too_long or (self._bytes and size > self._max_bytes):
            raise TooManyRequests(
                f"The queue of predictions is full: {self._rows} rows wait, and {self._bytes} "
                "bytes of requests are held; try again later.",
                retry_after=self._retry_after(),
            )
        if share is not None:
            if (share.rows and share.rows + n_rows > self._max_rows - self._rows) or (
                share.bytes and share.bytes + n_bytes > self._max_bytes - self._bytes
            ):
                raise QueueShareTaken(
                    f"This tenant's share of the queue of predictions is taken: {share.rows} rows "
                    f"wait, and {share.bytes} bytes of requests are held; try again later.",
                    retry_after=self._retry_after(),
                )
            share.rows += n_rows
            share.bytes += n_bytes
        self._rows, self._bytes = rows, size

    def leave(self, requests: Sequence[BatchRequest], now: float) -> None:
        """Count requests that wait no more; their bodies are held on."""
        for request in requests:
            self._rows -= self._rows_of(request)
            if request.share is not None:
                request.share.rows -= self._rows_of(request)
        self._waited([now - request.arrived for request in requests])

    def come_back(self, request: BatchRequest) -> None:
        """Count a request that waits again."""
        self._rows += self._rows_of(request)
        if request.share is not None:
            request.share.rows += self._rows_of(request)

    def end(self, request: BatchRequest) -> None:
        """Count a request that was answered, or that nobody waits for any more."""
        self._bytes -= self._bytes_of(request)
        if request.share is not None:
            request.share.bytes -= self._bytes_of(request)

    def served(self, n_rows: int, now: float) -> None:
        """Count rows that were answered, for an estimate of the rate."""
        elapsed = now - self._last
        self._last = now
        keep = math.exp(-elapsed / RATE_WINDOW_SECONDS)
        self._rate = keep * self._rate + n_rows / RATE_WINDOW_SECONDS

    def _rows_of(self, request: BatchRequest) -> int:
        """Return what a request counts as.

        Where several share the room one takes half of it at most, however large it is: its rows are
        a guess, and while it waits others are to find room.
        """
        if request.share is None:
            return request.n_rows
        return min(request.n_rows, max(self._max_rows // 2, 1))

    def _bytes_of(self, request: BatchRequest) -> int:
        if request.share is None:
            return len(request.body)
        return min(len(request.body), max(self._max_bytes // 2, 1))

    def _retry_after(self) -> int:
        seconds = math.ceil(self._rows / max(self._rate, 1.0))
        return min(max(seconds, 1), LONGEST_RETRY_SECONDS)
