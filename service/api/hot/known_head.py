"""The head of a connection's last request: clients send the same one again and again."""

from service.api.hot.arriving_body import ArrivingBody
from service.api.hot.hot_cycle import HotCycle

# Longer ones are not worth being compared.
MOST_BYTES = 4096


class KnownHead:
    """All bytes of a hot request before its body, and what they mean.

    The same bytes mean the same where the parser stands between two requests; the body has the
    length that they say.
    """

    __slots__ = ("_body_bytes", "_first", "_head", "size")

    def __init__(self, head: bytes, first: HotCycle, body_bytes: int) -> None:
        self._head = head
        self._first = first
        self._body_bytes = body_bytes
        self.size = len(head)

    @classmethod
    def of(cls, fed: bytes, cycle: HotCycle, *, claimed: bytes) -> "KnownHead | None":
        """Return the head of a request that came as one and is all of ``fed``; else None.

        ``claimed`` is its Content-Length, which one with a body in chunks does not have.
        """
        size = cycle.body.size
        head = fed[: len(fed) - size]
        if not size or claimed != b"%d" % size or not head.endswith(b"\r\n\r\n"):
            return None
        if not cycle.keep_alive or len(head) > MOST_BYTES or head.count(b"\r\n\r\n") > 1:
            return None
        return cls(head, cycle, size)

    def begins(self, data: bytes) -> bool:
        """Tell whether ``data`` is one whole request with this head."""
        return len(data) == self.size + self._body_bytes and data.startswith(self._head)

    def cycle(self, body: ArrivingBody, *, arrived: float) -> HotCycle:
        """Return the exchange of a request with this head."""
        return self._first.again(body, arrived=arrived)
