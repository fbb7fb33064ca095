"""Several requests under way at a time."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def answered(
    ask: Callable[[A], B], asked: Iterable[tuple[A, bool]], *, at_a_time: int
) -> Iterator[tuple[A, B]]:
    """Yield each thing asked with its answer, as answers come; at most so many are held.

    What comes with true is asked alone, once all before it are answered.
    """
    under_way: dict[Future[B], A] = {}
    for thing, alone in asked:
        while under_way and (alone or len(under_way) == at_a_time):
            yield from _come(under_way)
        under_way[_begun(ask, thing)] = thing
    while under_way:
        yield from _come(under_way)


def _begun(ask: Callable[[A], B], thing: A) -> Future[B]:
    """Ask in a thread that nobody waits for who is interrupted, as an executor's would be."""
    future: Future[B] = Future()

    def work() -> None:
        try:
            future.set_result(ask(thing))
        except BaseException as error:  # noqa: BLE001 - raised where the answer is taken
            future.set_exception(error)

    threading.Thread(target=work, name="asking", daemon=True).start()
    return future


def _come(under_way: dict[Future[B], A]) -> Iterator[tuple[A, B]]:
    """Wait for the next, and yield all that are there."""
    for future in wait(under_way, return_when=FIRST_COMPLETED).done:
        yield under_way.pop(future), future.result()
