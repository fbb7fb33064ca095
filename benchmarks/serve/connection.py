"""A persistent HTTP/1.1 connection over a plain socket, with one request at a time."""

import asyncio
import socket
from dataclasses import dataclass
from typing import cast

HEAD_END = b"\r\n\r\n"
RESET = bytes([1, 0, 0, 0, 0, 0, 0, 0])  # struct linger: on, for no time


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    head: bytes
    body: bytes

    def header(self, name: str) -> str | None:
        """Return a header's value, or None."""
        wanted = name.lower().encode()
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.strip().lower() == wanted:
                return value.strip().decode("latin-1")
        return None


class Connection(asyncio.Protocol):
    """Opened by `open`; `ask` raises ConnectionError if it breaks during a response."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._waiting: asyncio.Future[Answer] | None = None
        self._transport: asyncio.Transport | None = None
        self._head: tuple[int, bytes, int] | None = None
        self.is_open = False

    @classmethod
    async def open(cls, address: str) -> "Connection":
        """Connect to ``host:port``."""
        host, _, port = address.rpartition(":")
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(cls, host, int(port))
        return connection

    def ask(self, request: bytes) -> "asyncio.Future[Answer]":
        """Send a whole request; the future is its response."""
        self._waiting = asyncio.get_running_loop().create_future()
        if self._transport is None or not self.is_open:
            self._waiting.set_exception(ConnectionResetError("the server closed the connection"))
        else:
            self._transport.write(request)
        return self._waiting

    def close(self) -> None:
        """Close it with FIN."""
        self.is_open = False
        if self._transport is not None:
            self._transport.close()

    def reset(self) -> None:
        """Reset it (RST); unsent data are lost."""
        self.is_open = False
        if self._transport is not None:
            own = self._transport.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has no such base
        self.is_open = True

    def connection_lost(self, error: Exception | None) -> None:
        """Fail the waiting request."""
        self.is_open = False
        if self._waiting is not None and not self._waiting.done():
            lost = ConnectionResetError("the connection was lost before the answer was whole")
            lost.__cause__ = error
            self._waiting.set_exception(lost)

    def data_received(self, data: bytes) -> None:
        """Collect a response."""
        self._buffer += data
        if self._head is None:
            end = self._buffer.find(HEAD_END)
            if end < 0:
                return
            head = bytes(self._buffer[:end])
            del self._buffer[: end + len(HEAD_END)]
            length = Answer(0, head, b"").header("Content-Length")
            if length is None:
                raise ValueError(f"expected an answer with Content-Length, got {head!r}")
            self._head = int(head[9:12]), head, int(length)
        status, head, length_ = self._head
        if len(self._buffer) < length_:
            return
        body = bytes(self._buffer[:length_])
        self._buffer.clear()
        self._head = None
        if b"connection: close" in head.lower():
            self.close()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(Answer(status, head, body))
