"""A blocking socket that carries frames."""

import select
import socket
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from service.runner.messages.frames import (
    HEADER,
    MAX_FIELDS_BYTES,
    MAX_TENSOR_BYTES,
    Buffer,
    Frame,
    FrameError,
    Header,
    parse_body,
    parse_header,
)

BUFFERS_PER_CALL = 64
INBOX_BYTES = 2**16
CLOSED = "the other side closed the socket"

T = TypeVar("T")


class ChannelClosed(Exception):
    """The other side closed the socket."""


class Channel:
    """One end of a socket pair, for one thread at a time.

    After an exception the stream may be in the middle of a frame: close the channel.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        # Most frames take one system call. Unread bytes lie between these two positions.
        self._inbox = memoryview(bytearray(INBOX_BYTES))
        self._start = self._end = 0
        self._may_wait = False

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def is_open(self) -> bool:
        """Whether the other side has not closed the socket; nothing is read."""
        fd = self._socket.fileno()
        if fd < 0:
            return False
        watch = select.poll()
        watch.register(fd, 0)  # a hang-up is always reported
        return not watch.poll(0)

    def send(self, buffers: Sequence[Buffer], *, deadline: float | None = None) -> None:
        """Send the buffers of a frame.

        Raises
        ------
        ChannelClosed, TimeoutError
            If the other side closed the socket, or ``deadline`` (of `time.monotonic`) passed.
        """
        waiting = list(buffers)
        while waiting:
            some = waiting[:BUFFERS_PER_CALL]
            forget(waiting, self._transfer(self._socket.sendmsg, some, deadline))

    def receive(
        self,
        *,
        deadline: float | None = None,
        max_fields_bytes: int = MAX_FIELDS_BYTES,
        max_tensor_bytes: int = MAX_TENSOR_BYTES,
    ) -> Frame:
        """Wait for a frame.

        Raises
        ------
        FrameError
            If the bytes are not a frame, or it exceeds the limits.
        ChannelClosed, TimeoutError
            If the other side closed the socket, or ``deadline`` (of `time.monotonic`) passed.
        """
        header, fields, payload = self.receive_unread(
            deadline=deadline, max_fields_bytes=max_fields_bytes, max_tensor_bytes=max_tensor_bytes
        )
        return parse_body(header, fields, to_keep(payload))

    def receive_unread(
        self,
        *,
        deadline: float | None = None,
        max_fields_bytes: int = MAX_FIELDS_BYTES,
        max_tensor_bytes: int = MAX_TENSOR_BYTES,
    ) -> tuple[Header, Buffer, Buffer]:
        """Wait for a frame; return its header, and the bytes of its fields and of its arrays.

        The next frame may overwrite these bytes; `to_keep` returns arrays that stay.

        Raises
        ------
        FrameError, ChannelClosed, TimeoutError
            As `receive`.
        """
        if self._end - self._start < HEADER.size:
            self._fill(HEADER.size, deadline)
        header = parse_header(
            self._inbox[self._start : self._start + HEADER.size],
            max_fields_bytes=max_fields_bytes,
            max_tensor_bytes=max_tensor_bytes,
        )
        size = HEADER.size + header.fields_bytes + header.tensor_bytes
        if size > INBOX_BYTES:
            self._start += HEADER.size
            fields = self._read_apart(header.fields_bytes, deadline)
            return header, fields, self._read_apart(header.tensor_bytes, deadline)
        if self._end - self._start < size:
            self._fill(size, deadline)
        begin = self._start + HEADER.size
        arrays = begin + header.fields_bytes
        self._start = end = self._start + size
        return header, self._inbox[begin:arrays], self._inbox[arrays:end]

    def detach(self) -> socket.socket:
        """Return the socket; this channel must not be used afterwards.

        Raises
        ------
        FrameError
            If the other side has sent more than one answer.
        """
        if self._start != self._end:
            raise FrameError("there is more than one answer")
        self._socket.setblocking(False)
        return self._socket

    def _fill(self, size: int, deadline: float | None) -> None:
        """Read until the inbox holds ``size`` bytes, and any more that have arrived."""
        if self._start:
            held = bytes(self._inbox[self._start : self._end])
            self._inbox[: len(held)] = held
            self._start, self._end = 0, len(held)
        while self._end < size:
            self._end += self._receive_into(self._inbox[self._end :], deadline)

    def _read_apart(self, size: int, deadline: float | None) -> Buffer:
        """Read ``size`` bytes into a new buffer, those in the inbox first."""
        # A bytearray would be cleared first: an extra pass over large inputs.
        try:
            buffer = np.empty(size, dtype=np.uint8).data
        except MemoryError as error:
            raise FrameError("there is not enough memory for the frame") from error
        have = min(size, self._end - self._start)
        buffer[:have] = self._inbox[self._start : self._start + have]
        self._start += have
        while have < size:
            have += self._receive_into(buffer[have:], deadline)
        return buffer

    def _receive_into(self, buffer: memoryview, deadline: float | None) -> int:
        got = self._transfer(self._socket.recv_into, buffer, deadline)
        if not got:
            raise ChannelClosed(CLOSED)
        return got

    def _transfer(self, transfer: Callable[[T], int], data: T, deadline: float | None) -> int:
        if deadline is not None or not self._may_wait:
            self._set_timeout(deadline)
        try:
            return transfer(data)
        except TimeoutError:
            raise
        except OSError as error:
            raise ChannelClosed(CLOSED) from error

    def _set_timeout(self, deadline: float | None) -> None:
        # Setting the same timeout again would cost a system call.
        self._may_wait = deadline is None
        if deadline is None:
            self._socket.settimeout(None)
            return
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("the deadline passed")
        self._socket.settimeout(remaining)


def to_keep(payload: Buffer) -> Buffer:
    """Return the bytes of a frame's arrays, aligned, and safe from the next frame."""
    return bytes(payload) if len(payload) <= INBOX_BYTES else payload


def forget(buffers: list[Buffer], sent: int) -> None:
    """Remove so many bytes, which were sent, from the beginning of buffers."""
    done = 0
    for buffer in buffers:
        if sent < len(buffer):
            break
        sent -= len(buffer)
        done += 1
    del buffers[:done]
    if sent:
        buffers[0] = memoryview(buffers[0])[sent:]
