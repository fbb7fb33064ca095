"""The socket of a child in the hands of an event loop: frames out, frames in, nobody waits."""

import asyncio
import socket
from collections.abc import Callable, Sequence

from service.runner.frames import HEADER, Buffer, FrameError, Header, parse_header

BUFFERS_PER_CALL = 64
FIRST_BYTES = 2**16

Received = Callable[[Header, bytes, bytes], None]


class Link:
    """Frames to and from a child. One frame of the other side's is under way at most.

    Parameters
    ----------
    sock
        A socket that does not block; whoever gave it closes it.
    received
        Told of each frame: its header, and the bytes of its fields and its arrays.
    lost
        Told once that the other side is gone (None), or of what is no frame. The link is closed
        by then.

    Attributes
    ----------
    is_unread
        Whether the other side went before it had read the last frame.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        *,
        received: Received,
        lost: Callable[[FrameError | None], None],
    ) -> None:
        self._loop = loop
        self._socket = sock
        self._received = received
        self._lost = lost
        self._max_fields_bytes = self._max_tensor_bytes = 0
        self._inbox = memoryview(bytearray(FIRST_BYTES))
        self._have = 0
        self._outbox: list[Buffer] = []
        self._is_open = True
        self._is_writing = False
        self.is_unread = False
        loop.add_reader(sock, self._read)

    def send(
        self, buffers: Sequence[Buffer], *, max_fields_bytes: int, max_tensor_bytes: int
    ) -> None:
        """Send a frame, whose answer may have so many bytes of fields and of arrays."""
        if not self._is_open:
            self.is_unread = True
            return
        self._max_fields_bytes, self._max_tensor_bytes = max_fields_bytes, max_tensor_bytes
        self._outbox = list(buffers)
        self._write()

    def close(self) -> None:
        """Look at the socket no more."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._outbox.clear()

    def _give_up(self, error: FrameError | None) -> None:
        if self._is_open:
            self.close()
            self._lost(error)

    def _write(self) -> None:
        try:
            while self._outbox:
                self._forget(self._socket.sendmsg(self._outbox[:BUFFERS_PER_CALL]))
        except BlockingIOError:
            if not self._is_writing:
                self._loop.add_writer(self._socket, self._write)
                self._is_writing = True
        except OSError:
            self.is_unread = True
            self._give_up(None)
        else:
            if self._is_writing:
                self._loop.remove_writer(self._socket)
                self._is_writing = False

    def _forget(self, sent: int) -> None:
        done = 0
        for buffer in self._outbox:
            if sent < len(buffer):
                break
            sent -= len(buffer)
            done += 1
        del self._outbox[:done]
        if sent:
            self._outbox[0] = memoryview(self._outbox[0])[sent:]

    def _read(self) -> None:
        try:
            got = self._socket.recv_into(self._inbox[self._have :])
        except BlockingIOError:
            return
        except OSError:
            # The kernel says so of an end that was closed before it read all that was sent.
            got, self.is_unread = 0, True
        if not got:
            self.is_unread |= bool(self._outbox)
            self._give_up(None)
            return
        self._have += got
        try:
            self._look()
        except FrameError as error:
            self._give_up(error)

    def _look(self) -> None:
        """Pass on the frame if all of it is there; otherwise see to it that it has room."""
        if self._have < HEADER.size:
            return
        header = parse_header(
            self._inbox[: HEADER.size],
            max_fields_bytes=self._max_fields_bytes,
            max_tensor_bytes=self._max_tensor_bytes,
        )
        arrays = HEADER.size + header.fields_bytes
        end = arrays + header.tensor_bytes
        if self._have > end:
            raise FrameError("there is more than was asked for")
        if self._outbox:
            raise FrameError("an answer before the end of the question")
        if self._have == end:
            fields, payload = (
                bytes(self._inbox[HEADER.size : arrays]),
                bytes(self._inbox[arrays:end]),
            )
            self._have = 0
            self._max_fields_bytes = self._max_tensor_bytes = 0
            if len(self._inbox) > FIRST_BYTES:
                self._inbox = memoryview(bytearray(FIRST_BYTES))
            self._received(header, fields, payload)
        elif len(self._inbox) <= end:
            self._grow(end + 1)  # one more, to see what comes unasked

    def _grow(self, size: int) -> None:
        try:
            inbox = memoryview(bytearray(size))
        except MemoryError as error:
            raise FrameError("there is no memory for the frame") from error
        inbox[: self._have] = self._inbox[: self._have]
        self._inbox = inbox
