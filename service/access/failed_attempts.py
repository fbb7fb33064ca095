"""Failed authentication attempts by client address, against guessing of API keys."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address

from service.errors import TooManyBadKeys

WINDOW_SECONDS = 60.0
# Number of addresses and keys that are remembered.
MOST_REMEMBERED = 10_000
# A client with one IPv6 address usually has its whole network.
_NETWORK_BYTES = 8


@dataclass(slots=True)
class _Tried:
    since: float
    count: int = 0


class FailedAttempts:
    """Counts invalid keys; call it from one event loop only.

    Valid keys are still accepted from an address with too many invalid ones, because others may
    share it. Only a key whose id came with too many wrong secrets from there is refused.

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
        self._tried: OrderedDict[tuple[str, str | None], _Tried] = OrderedDict()

    def require_room(self, peer: str, key_id: str | None) -> None:
        """Refuse an address with too many failed attempts.

        Raises
        ------
        TooManyBadKeys
            If this address has sent the id of a valid key with too many wrong secrets.
        """
        if self._tried and key_id is not None:
            self._require(self._found((_network(peer), key_id)))

    def note(self, peer: str, key_id: str | None) -> None:
        """Count an invalid key, with the id of the valid key that it names, if any.

        Raises
        ------
        TooManyBadKeys
            If the address has sent too many.
        """
        if not self._most:
            return
        network = _network(peer)
        if key_id is not None:
            self._count((network, key_id))
        of_all = self._count((network, None))
        # The same whether or not there is a key with this id.
        self._require(of_all)

    def _count(self, what: tuple[str, str | None]) -> _Tried:
        tried = self._found(what)
        if tried is None:
            tried = self._tried[what] = _Tried(self._clock())
            while len(self._tried) > MOST_REMEMBERED:
                self._tried.popitem(last=False)
        tried.count += 1
        self._tried.move_to_end(what)
        return tried

    def _found(self, what: tuple[str, str | None]) -> _Tried | None:
        tried = self._tried.get(what)
        if tried is not None and self._clock() - tried.since >= WINDOW_SECONDS:
            del self._tried[what]
            return None
        return tried

    def _require(self, tried: _Tried | None) -> None:
        if tried is not None and tried.count > self._most:
            left = tried.since + WINDOW_SECONDS - self._clock()
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
