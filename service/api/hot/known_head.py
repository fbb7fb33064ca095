"""The head of a connection's last request: clients send the same one again and again."""

from service.api.hot.exchange import RequestHead
from service.api.hot.hot_cycle import HotCycle

# Longer ones are not worth being compared.
MOST_BYTES = 4096


class KnownHead:
    """All bytes of a hot request before its body, and what they mean.

    The same bytes mean the same where the parser stands between two requests; the body has the
    length that they say.
    """

    __slots__ = ("_bytes", "_whole", "head", "size")

    def __init__(self, text: bytes, head: RequestHead, body_bytes: int) -> None:
        self._bytes = text
        self._whole = len(text) + body_bytes
        self.head = head
        self.size = len(text)

    @classmethod
    def of(cls, fed: bytes, cycle: HotCycle, *, claimed: bytes) -> "KnownHead | None":
        """Return the head of a request that came as one and is all of ``fed``; else None.

        ``claimed`` is its Content-Length, which one with a body in chunks does not have.
        """
        size = len(cycle.body)
        text = fed[: len(fed) - size]
        if not size or claimed != b"%d" % size or not text.endswith(b"\r\n\r\n"):
            return None
        if not cycle.keep_alive or len(text) > MOST_BYTES or text.count(b"\r\n\r\n") > 1:
            return None
        return cls(text, cycle.head, size)

    def begins(self, data: bytes) -> bool:
        """Tell whether ``data`` is one whole request with this head."""
        return len(data) == self._whole and data.startswith(self._bytes)
