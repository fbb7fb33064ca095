"""Several requests under way at a time, their answers in the order of their rows."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def in_order(
    ask: Callable[[A], B], asked: Iterable[tuple[A, bool]], *, at_a_time: int
) -> Iterator[tuple[A, B]]:
    """Yield each thing asked with its answer; at most so many are held.

    What comes with true is asked alone, once all before it are answered.
    """
    with ThreadPoolExecutor(at_a_time, thread_name_prefix="asking") as threads:
        under_way: deque[tuple[A, Future[B]]] = deque()
        try:
            for thing, alone in asked:
                while under_way and (alone or len(under_way) == at_a_time):
                    yield _first(under_way)
                under_way.append((thing, threads.submit(ask, thing)))
            while under_way:
                yield _first(under_way)
        finally:
            for _, future in under_way:
                future.cancel()


def _first(under_way: "deque[tuple[A, Future[B]]]") -> tuple[A, B]:
    thing, future = under_way[0]
    answer = future.result()
    under_way.popleft()
    return thing, answer
