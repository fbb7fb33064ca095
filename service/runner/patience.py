"""How long somebody waits for an ONNX model's process, and what is looked at meanwhile."""

import time
from collections.abc import Callable

from service.errors import Overloaded

BEAT_SECONDS = 0.5


class Patience:
    """Waits in short beats, for ``seconds`` at most; between beats ``check`` may raise.

    ``check`` is called by whoever waits, never under a lock of the pool's.
    """

    def __init__(self, seconds: float, check: Callable[[], None] | None = None) -> None:
        self._until = time.monotonic() + seconds
        self._check = check

    def beat(self) -> float:
        """Return how long to wait before the next check; 0 when the time is up."""
        return min(max(self._until - time.monotonic(), 0.0), BEAT_SECONDS)

    def go_on(self, reason: str) -> None:
        """Decide after a beat whether to wait on.

        Raises
        ------
        Overloaded
            With this reason, if the time is up.
        """
        if self._check is not None:
            self._check()
        if time.monotonic() >= self._until:
            raise Overloaded(reason)
