"""How much may wait for all models together, and when it is worth coming again."""

import math
from collections.abc import Callable, Iterable, Sequence

from service.errors import TooManyRequests
from service.runner.batch_request import BatchRequest

LONGEST_RETRY_SECONDS = 60
# Of the rate of answers, how much the last second counts.
RATE_WINDOW_SECONDS = 1.0


class QueueBounds:
    """Counts rows that wait, and bytes until they are answered; refuses more than may be.

    One request may always wait, however large it is. ``waited`` is told the seconds of each.
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
        rows, size = self._rows + request.n_rows, self._bytes + len(request.body)
        too_long = self._rows and rows > self._max_rows
        if too_long or (self._bytes and size > self._max_bytes):
            raise TooManyRequests(
                f"The queue of predictions is full: {self._rows} rows wait, and {self._bytes} "
                "bytes of requests are held; try again later.",
                retry_after=self._retry_after(),
            )
        self._rows, self._bytes = rows, size

    def leave(self, requests: Sequence[BatchRequest], now: float) -> None:
        """Count requests that wait no more; their bodies are held on."""
        for request in requests:
            self._rows -= request.n_rows
        self._waited([now - request.arrived for request in requests])

    def come_back(self, request: BatchRequest) -> None:
        """Count a request that waits again."""
        self._rows += request.n_rows

    def end(self, request: BatchRequest) -> None:
        """Count a request that was answered, or that nobody waits for any more."""
        self._bytes -= len(request.body)

    def served(self, n_rows: int, now: float) -> None:
        """Count rows that were answered, for an estimate of the rate."""
        elapsed = now - self._last
        self._last = now
        keep = math.exp(-elapsed / RATE_WINDOW_SECONDS)
        self._rate = keep * self._rate + n_rows / RATE_WINDOW_SECONDS

    def _retry_after(self) -> int:
        seconds = math.ceil(self._rows / max(self._rate, 1.0))
        return min(max(seconds, 1), LONGEST_RETRY_SECONDS)
