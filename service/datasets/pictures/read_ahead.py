"""Pictures decoded by a few threads, in order, no more of them ahead than memory has room for."""

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Made = TypeVar("Made")

MOST_THREADS = 4
MEBIBYTE = 1024**2
MOST_BYTES_AHEAD = 64 * MEBIBYTE


def in_order(
    items: Iterable[int], make: Callable[[int], Made], kept_bytes: Callable[[int], int]
) -> Generator[Made, None, None]:
    """Yield what ``make`` makes of each item, in their order; the next ones are made meanwhile.

    ``kept_bytes`` is what an item takes until it is yielded. What is made ahead stays within 64
    MiB and four items a thread. An error comes up in its item's turn, so that the first item at
    fault is told, whichever thread is done first.
    """
    n_threads = min(MOST_THREADS, _n_cpus())
    ahead: deque[tuple[Future[Made], int]] = deque()
    taken = 0
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="pictures")
    try:
        for item in items:
            size = kept_bytes(item)
            while ahead and (taken + size > MOST_BYTES_AHEAD or len(ahead) == 4 * n_threads):
                made, given_back = ahead.popleft()
                taken -= given_back
                yield made.result()
            ahead.append((pool.submit(make, item), size))
            taken += size
        while ahead:
            yield ahead.popleft()[0].result()
    finally:
        pool.shutdown(cancel_futures=True)


def _n_cpus() -> int:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return allowed or 1


class Room:
    """Bytes that several threads share: who needs some waits until they are free."""

    def __init__(self, size: int) -> None:
        self._size = self._free = size
        self._freed = threading.Condition()

    @contextmanager
    def taken(self, size: int) -> Iterator[None]:
        """Hold ``size`` bytes, or all there are if it is more."""
        size = min(size, self._size)
        with self._freed:
            self._freed.wait_for(lambda: self._free >= size)
            self._free -= size
        try:
            yield
        finally:
            with self._freed:
                self._free += size
                self._freed.notify_all()
