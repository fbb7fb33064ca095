"""What a connection may take: bytes of headers, time, and bytes of bodies under way."""

from dataclasses import dataclass

from service.errors import QueueShareTaken, TooManyRequests
from service.runner import QueueShare

KIBIBYTE = 1024
MEBIBYTE = 1024**2


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of each connection, and of the bodies that all of them receive at once.

    Parameters
    ----------
    max_header_bytes, max_headers : int
        Of the request line and the headers together; how many headers there may be.
    header_seconds : float
        From the first byte of a request, or the start of a connection, to the end of the headers.
    window_seconds, min_bytes_per_second
        In each window of this length a hot body has to come at this rate, or to its end.
    hot_body_seconds : float
        From the first byte of a request to the end of a hot body, at whatever rate.
    upload_bytes_per_second : int
        The rate of any other body, whenever the service reads it.
    stall_seconds : float
        How long a client may read nothing of an answer.
    max_connections : int
        That are held at a time; of more, those that wait the longest are ended.
    max_receiving_bytes : int
        Of hot bodies that are being received, over all connections.
    keep_alive_seconds : float
        How long a connection may be idle between two requests.
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
    keep_alive_seconds: float = 75.0
    max_connections: int = 4096


class BodyBudget:
    """Counts the bytes of hot bodies that are being received."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.taken = 0

    def take(self, n_bytes: int, share: QueueShare | None = None) -> None:
        """Count bytes that are to come or have come.

        Of several who share the room each may have as much as it leaves free.

        Raises
        ------
        TooManyRequests
            If that is more than there may be at once; nothing is counted then.
        """
        if self.taken + n_bytes > self._max_bytes:
            raise TooManyRequests(
                "more rows are being received than fit: at most "
                f"{self._max_bytes} bytes at once; try again, or send fewer rows at a time"
            )
        if share is not None:
            if share.receiving and share.receiving + n_bytes > self._max_bytes - self.taken:
                raise QueueShareTaken(
                    f"{share.receiving} bytes of rows are being received for this tenant, and the "
                    "rest of the room is for others; try again, or send fewer rows at a time"
                )
            share.receiving += n_bytes
        self.taken += n_bytes

    def give_back(self, n_bytes: int, share: QueueShare | None = None) -> None:
        """Forget bytes that were counted."""
        self.taken -= n_bytes
        if share is not None:
            share.receiving -= n_bytes


class Pace:
    """Tells whether a hot body comes fast enough, window by window, and in all.

    Parameters
    ----------
    limits : ConnectionLimits
    arrived : float
        When its request began.
    started : float
        When it was seen not to have come at once.
    """

    def __init__(self, limits: ConnectionLimits, *, arrived: float, started: float) -> None:
        self._window = limits.window_seconds
        self._step = limits.window_seconds * limits.min_bytes_per_second
        self._owed = self._step
        self._end = arrived + limits.hot_body_seconds
        self.due = min(started + self._window, self._end)

    def is_kept(self, received: int) -> bool:
        """Tell it of what has come at the end of a window, and begin the next."""
        if received < self._owed or self.due >= self._end:
            return False
        self._owed = received + self._step
        self.due = min(self.due + self._window, self._end)
        return True
