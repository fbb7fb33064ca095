"""Several requests under way at a time."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def answered(
    ask: Callable[[A], B], asked: Iterable[tuple[A, bool]], *, at_a_time: int
) -> Iterator[tuple[A, B]]:
    """Yield each thing asked with its answer, as answers come; at most so many are held.

    What comes with true is asked alone, once all before it are answered.
    """
    with ThreadPoolExecutor(at_a_time, thread_name_prefix="asking") as threads:
        under_way: dict[Future[B], A] = {}
        try:
            for thing, alone in asked:
                while under_way and (alone or len(under_way) == at_a_time):
                    yield from _come(under_way)
                under_way[threads.submit(ask, thing)] = thing
            while under_way:
                yield from _come(under_way)
        finally:
            for future in under_way:
                future.cancel()


def _come(under_way: dict[Future[B], A]) -> Iterator[tuple[A, B]]:
    """Wait for the next, and yield all that are there."""
    for future in wait(under_way, return_when=FIRST_COMPLETED).done:
        yield under_way.pop(future), future.result()
