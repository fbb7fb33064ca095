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
    parse_body,
    parse_header,
)

BUFFERS_PER_CALL = 64


class ChannelClosed(Exception):
    """The other side is gone."""


class Channel:
    """One end of a socket pair. Not for several threads at once.

    After any exception the stream may stand in the middle of a frame, and the channel is of no
    more use.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

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
        header = parse_header(
            self._read(HEADER.size, deadline),
            max_fields_bytes=max_fields_bytes,
            max_tensor_bytes=max_tensor_bytes,
        )
        fields = self._read(header.fields_bytes, deadline)
        return parse_body(header, fields, self._read(header.tensor_bytes, deadline))

    def _read(self, size: int, deadline: float | None) -> Buffer:
        # Not a bytearray: that one is cleared first, which costs a pass over large inputs.
        try:
            buffer = np.empty(size, dtype=np.uint8).data if size else memoryview(b"")
        except MemoryError as error:
            raise FrameError("there is no memory for the frame") from error
        have = 0
        while have < size:
            self._set_timeout(deadline)
            try:
                got = self._socket.recv_into(buffer[have:])
            except TimeoutError:
                raise
            except OSError as error:
                raise ChannelClosed("the other side is gone") from error
            if not got:
                raise ChannelClosed("the other side is gone")
            have += got
        return buffer

    def _set_timeout(self, deadline: float | None) -> None:
        if deadline is None:
            self._socket.settimeout(None)
            return
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("the deadline passed")
        self._socket.settimeout(remaining)
