"""Threads that start together, and threads that wait for one another."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TypeVar

import pytest

Held = TypeVar("Held")
Result = TypeVar("Result")


def at_once(works: Sequence[Callable[[], object]]) -> list[object]:
    """Run each in a thread of its own, all from the same moment; raise what any of them raised."""
    barrier = threading.Barrier(len(works))

    def start(work: Callable[[], object]) -> object:
        barrier.wait(30)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(start, works))


def held_up(
    transaction: AbstractContextManager[Held],
    first: Callable[[Held], object],
    second: Callable[[], Result],
    then: Callable[[Held], object] = lambda _: None,
) -> Result:
    """Run ``second`` in a thread that must wait for what ``first`` locks; return its result.

    ``then`` belongs to the transaction of ``first`` too, and runs while the other one waits.
    """
    with ThreadPoolExecutor(1) as pool:
        with transaction as session:
            first(session)
            future = pool.submit(second)
            with pytest.raises(TimeoutError):
                future.result(0.15)
            then(session)
        return future.result(30)
