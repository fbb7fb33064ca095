"""A hot body as it arrives, within its limit and the budget of all."""

from service.api.hot.limits import BodyBudget
from service.errors import TooLarge
from service.operations.tenants import UNMETERED, TenantMeter


class ArrivingBody:
    """Collects a body; what comes is counted, whatever its length was said to be."""

    __slots__ = ("_budget", "_claimed", "_counted", "_kept", "_max_bytes", "meter", "size")

    def __init__(self, *, max_bytes: int, budget: BodyBudget) -> None:
        self._max_bytes = max_bytes
        self._budget = budget
        self._claimed = 0
        self._counted = 0
        self._kept: bytes | bytearray = b""
        self.size = 0
        # Of whose body it is, once that is known.
        self.meter: TenantMeter = UNMETERED

    def claim(self, length: bytes) -> None:
        """Take note of the length that the headers say, before any of it comes.

        Raises
        ------
        TooLarge
            If the body is longer than it may be.
        """
        self._claimed = int(length) if length.isdigit() else 0
        if self._claimed > self._max_bytes:
            raise self._too_large()

    def add(self, chunk: bytes) -> None:
        """Keep what came.

        Raises
        ------
        TooLarge
            If the body is longer than it may be.
        """
        self.size += len(chunk)
        if self.size > self._max_bytes:
            raise self._too_large()
        if not self._kept:
            self._kept = chunk
            return
        if isinstance(self._kept, bytes):
            # A list of chunks would take many times the bytes of chunks that are small.
            self._kept = bytearray(self._kept)
        self._kept += chunk

    def count(self) -> None:
        """Count a body that is not whole yet: all that it claims, or what has come of it.

        Raises
        ------
        TooManyRequests
            If more is being received than may be, or nothing may be asked for at all.
        """
        more = max(self._claimed, self.size) - self._counted
        if more > 0:
            if not self._counted and self.meter.requests is not None:
                self.meter.requests.require_some()
            self._budget.take(more, self.meter.share)
            self._counted += more

    def release(self) -> None:
        """Count it no longer: it is whole, or given up."""
        if self._counted:
            self._budget.give_back(self._counted, self.meter.share)
            self._counted = 0

    def whole(self) -> bytes:
        """Return what came; it is kept no longer."""
        whole, self._kept = bytes(self._kept), b""
        return whole

    def _too_large(self) -> TooLarge:
        return TooLarge.at("body", f"expected at most {self._max_bytes} bytes")
