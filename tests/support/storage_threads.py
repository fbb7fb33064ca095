"""Threads that start together, and threads that wait for one another."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from runner_children import wait_until
from sqlalchemy import Engine, event, text
from sqlalchemy.orm import Session

BLOCKED = """
    SELECT EXISTS (
        SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))
    )
"""
Result = TypeVar("Result")


def at_once(works: Sequence[Callable[[], object]]) -> list[object]:
    """Run each in a thread of its own, all from the same moment; raise what any of them raised."""
    barrier = threading.Barrier(len(works))

    def start(work: Callable[[], object]) -> object:
        barrier.wait(60)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(start, works))


def held_up(
    transaction: AbstractContextManager[Session],
    first: Callable[[Session], object],
    second: Callable[[], Result],
    then: Callable[[Session], object] = lambda _: None,
) -> Result:
    """Run ``second`` in a thread that must wait for what ``first`` locks; return its result.

    ``then`` belongs to the transaction of ``first`` too, and runs while the other one waits.
    """
    with ThreadPoolExecutor(1) as pool:
        with transaction as session:
            first(session)
            with waiting_for(session) as somebody_waits:
                future = pool.submit(second)
                assert wait_until(lambda: future.done() or somebody_waits())
            assert not future.done(), "nothing held it up"
            then(session)
        return future.result()


@contextmanager
def waiting_for(session: Session) -> Iterator[Callable[[], bool]]:
    """Yield what tells whether another transaction waits for that of this session."""
    if session.get_bind().dialect.name == "postgresql":
        yield lambda: bool(session.scalar(text(BLOCKED)))
        return
    begun = threading.Event()

    def begins(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement == "BEGIN IMMEDIATE":  # SQLite has one writer, which is this session
            begun.set()

    event.listen(Engine, "before_cursor_execute", begins)
    try:
        yield begun.is_set
    finally:
        event.remove(Engine, "before_cursor_execute", begins)
