"""A TCP address before a server's that can be cut off, be silent, lose an answer, and come back."""

import selectors
import socket
import threading
from contextlib import suppress
from typing import Self

CHUNK_BYTES = 2**16


class SeveredAddress:
    """Passes bytes on, while it is asked to."""

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._is_open, self._is_silent, self._ends = True, False, False
        self._left: list[bytes] | None = None
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends = True
        self.cut()
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()
        self._thread.join()
        self._listening.close()

    def cut(self) -> None:
        """End every connection; what is opened from now on ends at once."""
        with self._lock:
            self._is_open = False
            for pair in self._pairs:
                _end(pair)
            self._pairs.clear()

    def silence(self) -> None:
        """Pass nothing on any more, on whichever connection."""
        self._is_silent = True

    def restore(self) -> None:
        """Be as in the beginning, but for what was silent: that ends."""
        if self._is_silent:
            self.cut()
        self._is_open, self._is_silent = True, False

    def lose(self, *asked: bytes) -> None:
        """End a connection instead of passing on an answer, once these were asked in this order."""
        self._left = list(asked)

    @property
    def has_lost(self) -> bool:
        """Whether that has come to pass."""
        return self._left is None

    def _accept(self) -> None:
        while not self._ends:
            near, _ = self._listening.accept()
            with self._lock:
                if not self._is_open:
                    near.close()
                    continue
                pair = (near, socket.create_connection(self._to))
                self._pairs.append(pair)
            threading.Thread(target=self._pass_on, args=(pair,), daemon=True).start()

    def _pass_on(self, pair: tuple[socket.socket, socket.socket]) -> None:
        near, far = pair
        with suppress(OSError, ValueError), selectors.DefaultSelector() as looking:
            looking.register(near, selectors.EVENT_READ, far)
            looking.register(far, selectors.EVENT_READ, near)
            while all(self._moved(*found) for found in looking.select()):
                pass
        _end(pair)

    def _moved(self, key: selectors.SelectorKey, _: int) -> bool:
        """Pass on what has come; false at its end."""
        assert isinstance(key.fileobj, socket.socket)
        is_answer = key.fileobj.getpeername()[1] == self._to[1]
        chunk = key.fileobj.recv(CHUNK_BYTES)
        if is_answer and self._left == []:
            self._left = None
            return False
        while not is_answer and self._left and self._left[0] in chunk:
            self._left.pop(0)
        if chunk and not self._is_silent:
            key.data.sendall(chunk)
        return bool(chunk)


def _end(pair: tuple[socket.socket, socket.socket]) -> None:
    for end in pair:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
