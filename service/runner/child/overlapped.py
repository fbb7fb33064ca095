"""What is made of one answer of a model while it works on the next."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def overlapped(items: Iterable[Item], make: Callable[[Item], Made]) -> list[Made]:
    """Return what is made of each item, in order, on a thread beside the one that iterates.

    Not more than one item waits. The first failure, of ``items`` or of ``make``, is raised, that
    of an earlier item first.
    """
    made: list[Future[Made]] = []
    with ThreadPoolExecutor(1, thread_name_prefix="overlapped") as beside:
        try:
            for item in items:
                if made:
                    made[-1].result()
                made.append(beside.submit(make, item))
        except BaseException:
            if made:
                made[-1].result()
            raise
    return [future.result() for future in made]
