"""A socket that carries frames, whole or not at all."""

import select
import socket
import time
from collections.abc import Sequence

import numpy as np

from service.runner.frames import (
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
READ_AHEAD_BYTES = 2**16


class ChannelClosed(Exception):
    """The other side is gone."""


class Channel:
    """One end of a socket pair. Not for several threads at once.

    After any exception the stream may stand in the middle of a frame, and the channel is of no
    more use.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        # What came with the last read and was not asked for yet, between these two places.
        self._ahead = memoryview(bytearray(READ_AHEAD_BYTES))
        self._start = self._end = 0

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def is_open(self) -> bool:
        """Whether the other side is there, as far as the kernel knows; nothing is read."""
        fd = self._socket.fileno()
        if fd < 0:
            return False
        watch = select.poll()
        watch.register(fd, 0)  # an end that hung up is reported without being asked for
        return not watch.poll(0)

    def send(self, buffers: Sequence[Buffer], *, deadline: float | None = None) -> None:
        """Send a frame, as `frames.encode` returns it.

        Raises
        ------
        ChannelClosed, TimeoutError
            If the other side is gone, or ``deadline`` (of `time.monotonic`) passed.
        """
        waiting = [memoryview(buffer) for buffer in buffers]
        while waiting:
            self._set_timeout(deadline)
            try:
                sent = self._socket.sendmsg(waiting[:BUFFERS_PER_CALL])
            except TimeoutError:
                raise
            except OSError as error:
                raise ChannelClosed("the other side is gone") from error
            while waiting and sent >= len(waiting[0]):
                sent -= len(waiting.pop(0))
            if sent:
                waiting[0] = waiting[0][sent:]

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
            If what came is none, or announces more than the reader takes.
        ChannelClosed, TimeoutError
            If the other side is gone, or ``deadline`` (of `time.monotonic`) passed.
        """
        return parse_body(
            *self.receive_unread(
                deadline=deadline,
                max_fields_bytes=max_fields_bytes,
                max_tensor_bytes=max_tensor_bytes,
            )
        )

    def receive_unread(
        self,
        *,
        deadline: float | None = None,
        max_fields_bytes: int = MAX_FIELDS_BYTES,
        max_tensor_bytes: int = MAX_TENSOR_BYTES,
    ) -> tuple[Header, Buffer, Buffer]:
        """Wait for a frame; return its header, and the bytes of its fields and of its arrays.

        Raises
        ------
        FrameError, ChannelClosed, TimeoutError
            As `receive`.
        """
        header = parse_header(
            self._read(HEADER.size, deadline),
            max_fields_bytes=max_fields_bytes,
            max_tensor_bytes=max_tensor_bytes,
        )
        fields = self._read(header.fields_bytes, deadline)
        return header, fields, self._read(header.tensor_bytes, deadline)

    def lend(self) -> socket.socket:
        """Return the socket, to be read by somebody else from now on.

        Raises
        ------
        FrameError
            If the other side has sent more than it was asked for.
        """
        if self._start != self._end:
            raise FrameError("there is more than was asked for")
        self._socket.setblocking(False)
        return self._socket

    def _read(self, size: int, deadline: float | None) -> Buffer:
        if size <= READ_AHEAD_BYTES:
            while self._end - self._start < size:
                self._read_ahead(deadline)
            start, self._start = self._start, self._start + size
            return bytes(self._ahead[start : self._start])
        # Not a bytearray: that one is cleared first, which costs a pass over large inputs.
        try:
            buffer = np.empty(size, dtype=np.uint8).data
        except MemoryError as error:
            raise FrameError("there is no memory for the frame") from error
        have = self._take(buffer)
        while have < size:
            have += self._fill(buffer[have:], deadline)
        return buffer

    def _read_ahead(self, deadline: float | None) -> None:
        """Read more than is asked for: most frames are had by one call of the system."""
        held = self._end - self._start
        if held:
            self._ahead[:held] = bytes(self._ahead[self._start : self._end])
        self._start, self._end = 0, held
        self._end += self._fill(self._ahead[held:], deadline)

    def _take(self, buffer: memoryview) -> int:
        """Move what is there already; return how much."""
        size = min(len(buffer), self._end - self._start)
        if size:
            buffer[:size] = self._ahead[self._start : self._start + size]
            self._start += size
        return size

    def _fill(self, buffer: memoryview, deadline: float | None) -> int:
        self._set_timeout(deadline)
        try:
            got = self._socket.recv_into(buffer)
        except TimeoutError:
            raise
        except OSError as error:
            raise ChannelClosed("the other side is gone") from error
        if not got:
            raise ChannelClosed("the other side is gone")
        return got

    def _set_timeout(self, deadline: float | None) -> None:
        if deadline is None:
            self._socket.settimeout(None)
            return
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("the deadline passed")
        self._socket.settimeout(remaining)
