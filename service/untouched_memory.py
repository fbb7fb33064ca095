"""Memory for large bodies that costs time only where it is written, and freed memory."""

import ctypes
import sys
from contextlib import suppress
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import cast

if sys.platform == "linux":
    from mmap import MADV_HUGEPAGE


def return_freed_memory() -> None:
    """Return freed memory to the system; the C library keeps a hundred MiB after a large set."""
    with suppress(AttributeError):  # other C libraries have no such function
        ctypes.CDLL(None).malloc_trim(0)


def untouched_memory(size: int, *, is_filled: bool = True) -> mmap:
    """Return ``size`` bytes of memory, zeros until they are written.

    The kernel provides each page when it is first written. A bytearray or a copy of bytes would
    touch all pages in one call, which stops all threads: 30 MiB take 20 to 100 ms. Memory that
    ``is_filled`` has huge pages, which take about a quarter of the time of small ones.
    """
    memory = mmap(-1, max(size, 1), flags=MAP_PRIVATE | MAP_ANONYMOUS)
    if is_filled and sys.platform == "linux":
        with suppress(OSError):  # a kernel without huge pages
            memory.madvise(MADV_HUGEPAGE)
    return memory


def first_bytes(memory: mmap, size: int) -> bytes:
    """Return the first bytes without copying them; the memory must not be used otherwise.

    The result is a buffer with the methods of bytes that readers of bodies use.
    """
    if size < len(memory):
        with suppress(SystemError):  # macOS cannot resize it
            memory.resize(size)
    return cast("bytes", memory) if size == len(memory) else memory[:size]
