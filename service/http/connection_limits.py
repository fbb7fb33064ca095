"""Limits of connections and bodies, eviction of idle ones, and the pace of clients without keys."""

import math
from collections.abc import Iterable, Sized
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter
from typing import Protocol

import structlog

from service.errors import HeadersTooLarge
from service.http.prediction_exchange import Headers

# Key in the state of an ASGI scope: the body must arrive as fast as a head.
IS_SMALL_BODY = "is_small_body"
KIBIBYTE = 1024
MEBIBYTE = 1024**2
# Bytes of the request line besides its target, and of a header besides its name and value.
_FIRST_LINE_BYTES = len("POST  HTTP/1.1\r\n")
_HEADER_BYTES = len(": \r\n")
# Bytes of framing per byte of a chunked body: enough for chunks of five bytes.
_BESIDE_EACH_BYTE = 1


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of each connection, and of all bodies in transfer.

    Parameters
    ----------
    max_header_bytes, max_headers : int
        Bytes of the request line and all headers; number of headers.
    header_seconds : float
        Time from the first byte, or the start of the connection, to the end of the headers.
    window_seconds, min_bytes_per_second
        In each window of this length the body of a prediction must arrive at this rate, or end.
    hot_body_seconds : float
        Time from the first byte of a prediction to the end of its body.
    upload_bytes_per_second : int
        Minimum rate of any other body in each window, while the service reads it.
    stall_seconds : float
        In each window of this length a client must read responses at ``min_bytes_per_second``.
    max_connections : int
        Number of connections; beyond it the longest idle ones are closed.
    max_receiving_bytes, max_unread_bytes : int
        Bytes of bodies in transfer, but for uploads, and of responses that clients have not read;
        over all connections.
    keep_alive_seconds : float
        Maximum idle time between two requests.
    """

    max_header_bytes: int = 64 * KIBIBYTE
    max_headers: int = 128
    header_seconds: float = 20.0
    window_seconds: float = 20.0
    min_bytes_per_second: int = 8 * KIBIBYTE
    hot_body_seconds: float = 60.0
    upload_bytes_per_second: int = KIBIBYTE
    stall_seconds: float = 60.0
    max_receiving_bytes: int = 256 * MEBIBYTE
    max_unread_bytes: int = 256 * MEBIBYTE
    keep_alive_seconds: float = 75.0
    max_connections: int = 4096

    def check_head(self, target: bytes, headers: Headers) -> None:
        """Check the size of a complete head.

        Raises
        ------
        HeadersTooLarge
            If it has too many bytes or headers.
        """
        size = _FIRST_LINE_BYTES + len(target)
        size += sum(len(name) + len(value) + _HEADER_BYTES for name, value in headers)
        if size > self.max_header_bytes:
            raise self.head_too_large()
        if len(headers) > self.max_headers:
            raise HeadersTooLarge.at("headers", f"expected at most {self.max_headers} headers")

    def is_exceeded(self, *, beside_body: int, body: int) -> bool:
        """Tell whether an incomplete request has too many bytes besides its body."""
        return beside_body > self.max_header_bytes + _BESIDE_EACH_BYTE * body

    def head_too_large(self) -> HeadersTooLarge:
        """Return the error for a head with too many bytes."""
        return HeadersTooLarge.at(
            "headers", f"expected at most {self.max_header_bytes} bytes with the request line"
        )


# No younger connection is closed: its request may not have been read yet.
GRACE_SECONDS = 0.02
# Idle time counts fourfold until a connection has sent its first request. Closing such connections
# first in every case would let a flood of one-request clients push out new clients.
UNASKED = 4.0
# This share is closed at once, so that a full server does not search all connections for each new
# one.
SHARE = 16
TOLD_EVERY_SECONDS = 10.0

log = structlog.get_logger(__name__)


class Held(Protocol):
    """A connection that may be evicted."""

    def waits_since(self) -> float | None:
        """Return the start of its idle time; None while a request is received or answered."""

    def has_asked(self) -> bool:
        """Tell whether it has got a response."""

    def leave(self) -> None:
        """Close it."""


class Connections(Sized, Iterable[object], Protocol):
    """All open connections."""


class IdleEviction:
    """Limits the number of connections to ``most``.

    It closes the longest idle ones. The wait for the first request counts fourfold. A connection
    with a request in progress stays.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._told = -TOLD_EVERY_SECONDS

    def make_room(self, connections: Connections, now: float) -> bool:
        """Close idle connections if there are too many; tell whether the newest may stay."""
        if len(connections) <= self.most:
            return True
        left = self._close_longest_idle(connections, now)
        if now - self._told >= TOLD_EVERY_SECONDS:
            self._told = now
            log.warning("connections_full", most=self.most, ended=left)
        return left > 0

    def _close_longest_idle(self, connections: Connections, now: float) -> int:
        waiting: list[tuple[float, Held]] = []
        for connection in connections:
            held: Held = connection  # type: ignore[assignment]  # all are of our own protocol
            since = held.waits_since()
            if since is not None and now - since >= GRACE_SECONDS:
                waited = (now - since) * (1.0 if held.has_asked() else UNASKED)
                waiting.append((waited, held))
        wanted = len(connections) - self.most + self.most // SHARE
        longest = nlargest(wanted, waiting, key=itemgetter(0))
        for _, held in longest:
            held.leave()
        return len(longest)


# Answers to clients without a key, over all connections: so many a second, so many at once.
ANSWERS_A_SECOND, BURST = 400, 100
LONGEST_PAUSE_SECONDS = 1.0


class Pace:
    """Spreads the answers to clients without a key, so that others find the event loop free."""

    def __init__(self) -> None:
        self._due = -math.inf  # when the last answer would have had its turn

    def pause(self, now: float) -> float:
        """Count an answer; return how long its connection waits before its next request."""
        spaced = 1 / ANSWERS_A_SECOND
        self._due = max(self._due, now - BURST * spaced) + spaced
        return min(max(self._due - now, 0.0), LONGEST_PAUSE_SECONDS)
