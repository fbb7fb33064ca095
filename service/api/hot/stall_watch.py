"""Notices that something which should move stands still, or moves too slowly."""

import asyncio
from collections.abc import Callable


class StallWatch:
    """Looks at a number now and then, and tells when it stays as it is.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
    seconds : float
        Standing still for less than this always passes, for one and a half times this never.
    least : float
        By how much it has to grow in a second; where that is 0, any change will do.
    measure : callable
        Returns the number; None says that it cannot be expected to move.
    stalled : callable
        Called once, unless stopped.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        seconds: float,
        least: float = 0.0,
        measure: Callable[[], int | None],
        stalled: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._pause = seconds / 2
        self._step = least * self._pause
        self._measure = measure
        self._stalled = stalled
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to watch, or go on."""
        if self._timer is None:
            self._look_again(self._measure(), unmoved=0)

    def stop(self) -> None:
        """Watch no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_again(self, seen: int | None, *, unmoved: int) -> None:
        self._timer = self._loop.call_later(self._pause, self._look, seen, unmoved)

    def _look(self, seen: int | None, unmoved: int) -> None:
        self._timer = None
        found = self._measure()
        unmoved = unmoved + 1 if self._is_still(seen, found) else 0
        # One look may fall just behind a time in which nothing could move.
        if unmoved > 1:
            self._stalled()
        else:
            self._look_again(found, unmoved=unmoved)

    def _is_still(self, seen: int | None, found: int | None) -> bool:
        if found is None or seen is None:
            return False
        return found - seen < self._step if self._step else found == seen
