"""The file of a set, opened before the process is sandboxed and can open no path."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from service.errors import InvalidDataset, ServiceError, TooLarge


class LimitedReader(io.BufferedReader):
    """A stream that refuses large reads.

    Libraries read as many bytes as a header claims. Without a limit they would allocate memory for
    bytes that may not exist.
    """

    def __init__(
        self, raw: io.RawIOBase | io.BytesIO, size: int, *, most: int, refusal: TooLarge
    ) -> None:
        super().__init__(raw)
        self._size = size
        self._most = most
        self._refusal = refusal

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to ``size`` bytes, fewer only at the end.

        Raises
        ------
        TooLarge
            If that is more than may be read at once.
        """
        left = max(0, self._size - self.tell())
        size = left if size is None or size == -1 else min(size, left)
        if size > self._most:
            raise self._refusal
        return super().read(size)


class SetFile:
    """A file with any number of streams, each at its own position."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._descriptor).st_size

    def open(self) -> BinaryIO:
        """Return a stream that begins at the first byte."""
        return cast("BinaryIO", io.BufferedReader(_Stream(self)))

    def open_limited(self, *, most: int, refusal: TooLarge) -> BinaryIO:
        """Return a stream that reads at most ``most`` bytes at once."""
        return cast("BinaryIO", LimitedReader(_Stream(self), self.size, most=most, refusal=refusal))

    def read_at(self, size: int, offset: int) -> bytes:
        """Return up to ``size`` bytes; several threads may read at once."""
        return os.pread(self._descriptor, size, offset)

    def read_into(self, target: memoryview, offset: int) -> int:
        """Fill ``target`` with the bytes that exist; return their number."""
        return os.preadv(self._descriptor, [target], offset)

    def close(self) -> None:
        """Close the file and with it all of its streams."""
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
        start = (0, self._position, self._file.size)[whence]
        if start + offset < 0:
            raise OSError("a position before the first byte")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]  # typeshed's name for a buffer is private
        read = self._file.read_into(memoryview(buffer).cast("B"), self._position)
        self._position += read
        return read


@contextmanager
def refuse_damage(place: str) -> Iterator[None]:
    """Turn exceptions of libraries about a damaged file into a violation at ``place``."""
    try:
        yield
    except (ServiceError, MemoryError):  # pyarrow's own MemoryError too
        raise
    except Exception as error:
        raise InvalidDataset.at(
            place, "The file is damaged or cut off. Write it again and resend."
        ) from error
