"""Threads that start together."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor


def at_once(works: Sequence[Callable[[], object]]) -> list[object]:
    """Run each in a thread of its own, all from the same moment; raise what any of them raised."""
    barrier = threading.Barrier(len(works))

    def start(work: Callable[[], object]) -> object:
        barrier.wait(30)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(start, works))
