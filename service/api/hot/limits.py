"""What a connection may take: bytes of headers, time, and bytes of bodies under way."""

from dataclasses import dataclass

from service.errors import TooManyRequests

KIBIBYTE = 1024
MEBIBYTE = 1024**2


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of each connection, and of the bodies that all of them receive at once.

    Parameters
    ----------
    max_header_bytes : int
        Of the request line and the headers together.
    header_seconds : float
        From the first byte of a request, or the start of a connection, to the end of the headers.
    window_seconds, min_bytes_per_second
        In each window of this length a hot body has to come at this rate, or to its end.
    stall_seconds : float
        How long any other body may bring nothing, and a client read nothing of an answer.
    max_receiving_bytes : int
        Of hot bodies that are being received, over all connections.
    keep_alive_seconds : float
        How long a connection may be idle between two requests.
    """

    max_header_bytes: int = 64 * KIBIBYTE
    header_seconds: float = 20.0
    window_seconds: float = 20.0
    min_bytes_per_second: int = 8 * KIBIBYTE
    stall_seconds: float = 60.0
    max_receiving_bytes: int = 256 * MEBIBYTE
    keep_alive_seconds: float = 75.0


class BodyBudget:
    """Counts the bytes of hot bodies that are being received."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.taken = 0

    def take(self, n_bytes: int) -> None:
        """Count bytes that are to come or have come.

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
        self.taken += n_bytes

    def give_back(self, n_bytes: int) -> None:
        """Forget bytes that were counted."""
        self.taken -= n_bytes


class Pace:
    """Tells whether a hot body comes fast enough, window by window."""

    def __init__(self, limits: ConnectionLimits, *, started: float) -> None:
        self._window = limits.window_seconds
        self._step = limits.window_seconds * limits.min_bytes_per_second
        self._owed = self._step
        self.due = started + self._window

    def is_kept(self, received: int) -> bool:
        """Tell it of what has come at the end of a window, and begin the next."""
        if received < self._owed:
            return False
        self._owed = received + self._step
        self.due += self._window
        return True
