"""Failed authentication attempts by client address, against guessing of API keys."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address

from service.errors import TooManyBadKeys

WINDOW_SECONDS = 60.0
# Number of addresses that are remembered.
MOST_REMEMBERED = 10_000
# A client with one IPv6 address usually has its whole network.
_NETWORK_BYTES = 8


@dataclass(slots=True)
class _Tried:
    since: float
    count: int = 0


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
        self._clock = clock
        self._tried: OrderedDict[str, _Tried] = OrderedDict()

    def note(self, peer: str) -> None:
        """Count an invalid key.

        Raises
        ------
        TooManyBadKeys
            If the address has sent too many.
        """
        if not self._most:
            return
        network, now = _network(peer), self._clock()
        tried = self._tried.get(network)
        if tried is None or now - tried.since >= WINDOW_SECONDS:
            tried = self._tried[network] = _Tried(now)
            while len(self._tried) > MOST_REMEMBERED:
                self._tried.popitem(last=False)
        tried.count += 1
        self._tried.move_to_end(network)
        if tried.count > self._most:
            left = tried.since + WINDOW_SECONDS - now
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
