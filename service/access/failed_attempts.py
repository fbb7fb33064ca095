"""Failed authentication attempts by client address, against guessing of API keys."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sized
from ipaddress import AddressValueError, IPv6Address

from service.errors import TooManyBadKeys

WINDOW_SECONDS = 60.0
# Number of keys, such as addresses, that are remembered.
MOST_REMEMBERED = 10_000
# A client with one IPv6 address usually has its whole network.
_NETWORK_BYTES = 8


class MinuteCounts(Sized):
    """Counts events by key, each key in the minute that begins with its first event.

    The keys that were counted last are remembered. Call it from one event loop only.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, key: Hashable) -> tuple[int, float]:
        """Count one event; return the count and the seconds until the minute ends."""
        now = self._clock()
        since, count = self._counts.pop(key, (now, 0))
        if now - since >= WINDOW_SECONDS:
            since, count = now, 0
        self._counts[key] = since, count + 1
        while len(self._counts) > MOST_REMEMBERED:
            self._counts.popitem(last=False)
        return count + 1, since + WINDOW_SECONDS - now


class FailedAttempts:
    """Counts invalid keys; call it from one event loop only.

    A valid key is always accepted: others may share its address, and 256 random bits cannot be
    guessed.

    Parameters
    ----------
    most : int
        Per minute; 0: no limit.
    clock : callable
        Returns seconds.
    """

    def __init__(self, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._tried = MinuteCounts(clock=clock)

    def note(self, peer: str) -> None:
        """Count an invalid key.

        Raises
        ------
        TooManyBadKeys
            If the address has sent too many.
        """
        if not self._most:
            return
        count, left = self._tried.add(_network(peer))
        if count > self._most:
            raise TooManyBadKeys(
                f"More than {self._most} invalid API keys per minute from this address. "
                "Retry later with a valid key.",
                retry_after=max(1, math.ceil(left)),
            )


def _network(peer: str) -> str:
    if ":" not in peer:
        return peer
    try:
        return IPv6Address(peer.partition("%")[0]).packed[:_NETWORK_BYTES].hex()
    except AddressValueError:
        return peer
