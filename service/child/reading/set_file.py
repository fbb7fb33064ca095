"""The file of a set, opened once: a locked process can open no path."""

import io
import os
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from service.errors import TooLarge


class RawFile(Protocol):
    """What `LimitedReader` reads: bytes in memory, or in a file."""

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill ``buffer`` as far as there are bytes; return how many."""


class LimitedReader(io.BufferedReader):
    """A stream that libraries read: no more at once than is allowed, whatever a file claims.

    A library that asks for the gigabytes that a header claims would be given the memory for them
    before it is known whether they are there.
    """

    def __init__(self, raw: RawFile, size: int, *, most: int, refusal: TooLarge) -> None:
        super().__init__(raw)  # type: ignore[arg-type]  # anything with these methods does
        self._size = size
        self._most = most
        self._refusal = refusal

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to ``size`` bytes, fewer only at the end.

        Raises
        ------
        TooLarge
            If it is more than is read at once.
        ValueError
            If it is below -1: `tarfile` asks for as many bytes as a damaged header claims.
        """
        if size is not None and size < -1:
            raise ValueError(f"a size of {size} bytes")
        left = max(0, self._size - self.tell())
        size = left if size is None or size < 0 else min(size, left)
        if size > self._most:
            raise self._refusal
        return super().read(size)


class SetFile:
    """A file that any number of streams read at once, each at a position of its own."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._descriptor).st_size

    def open(self) -> BinaryIO:
        """Return a stream that begins at the first byte."""
        return cast("BinaryIO", io.BufferedReader(_Stream(self)))

    def open_limited(self, *, most: int, refusal: TooLarge) -> BinaryIO:
        """Return a stream of which no more than ``most`` bytes are read at once."""
        return cast("BinaryIO", LimitedReader(_Stream(self), self.size, most=most, refusal=refusal))

    def read_at(self, size: int, offset: int) -> bytes:
        """Return up to ``size`` bytes; several threads may read at once."""
        return os.pread(self._descriptor, size, offset)

    def read_into(self, target: memoryview, offset: int) -> int:
        """Fill ``target`` as far as the file reaches; return how many bytes that was."""
        return os.preadv(self._descriptor, [target], offset)

    def close(self) -> None:
        """Close the file; its streams read no more."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class _Stream(io.RawIOBase):
    def __init__(self, file: SetFile) -> None:
        self._file = file
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._file.size}[whence]
        if start + offset < 0:
            raise OSError("a position before the first byte")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]  # typeshed's name for a buffer is private
        read = self._file.read_into(memoryview(buffer).cast("B"), self._position)
        self._position += read
        return read
