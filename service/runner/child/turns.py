"""Requests whose rows wait in the child, and those rows of each that go into a run."""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from service.runner.child.decode_body import Decoded
from service.runner.frames import Array


class Waiting(msgspec.Struct, eq=False):
    """A request that was read and not yet answered."""

    number: int
    decoded: Decoded
    n_rows: int
    is_checked: bool
    # What rows must have in common to go through the model together.
    signature: tuple[tuple[int, ...], ...]
    next_row: int = 0

    @property
    def left(self) -> int:
        """How many rows are still to be run."""
        return self.n_rows - self.next_row

    def take(self, n_rows: int) -> "Turn":
        """Return the next so many rows, or those that are left."""
        turn = Turn(self, self.next_row, min(self.next_row + n_rows, self.n_rows))
        self.next_row = turn.stop
        return turn


class Turn(msgspec.Struct, eq=False):
    """Rows of one request that go into the next run."""

    of: Waiting
    start: int
    stop: int

    def rows(self) -> dict[str, Array]:
        """Return them as the model takes them."""
        whole = self.of.decoded.rows
        if self.stop - self.start == self.of.n_rows:
            return whole
        return {name: array[self.start : self.stop] for name, array in whole.items()}


def next_turns(waiting: dict[int, Waiting], run_rows: int) -> Iterator[Turn]:
    """Divide a run among those that may go together with the one that came first.

    Who has no rows left is taken out of ``waiting``, and the others go behind all that wait: who
    has rows of another shape comes first in the next run.
    """
    if not waiting:
        return
    first = next(iter(waiting.values())).signature
    together = [one for one in waiting.values() if one.signature == first][:run_rows]
    share = max(run_rows // len(together), 1)
    room = run_rows - sum(min(one.left, share) for one in together)
    for one in together:
        size = min(one.left, share)
        if size < one.left:
            more = min(one.left - size, room)
            room -= more
            size += more
        turn = one.take(size)
        del waiting[one.number]
        if one.left:
            waiting[one.number] = one
        yield turn


def joined(turns: Sequence[Turn]) -> dict[str, Array]:
    """Return the rows of all turns, one after the other."""
    if len(turns) == 1:
        return turns[0].rows()
    parts = [turn.rows() for turn in turns]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
