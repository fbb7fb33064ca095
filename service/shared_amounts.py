"""Who may hold how much of what: limited amounts that tenants share.

docs/limits.md shows the lines of the table, and `GET /usage` what a tenant holds of each.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Self
from uuid import UUID

from service.errors import ShareTaken, TooManyRequests

# The holder while a caller is not known: all strangers together have one share.
NOBODY = UUID(int=0)


class Line(Enum):
    """What is held, by the name of its limit."""

    QUEUED_ROWS = "queued-rows", "rows that wait for their models"
    QUEUED_BYTES = "queued-bytes", "bytes of prediction requests without a response"
    RECEIVED_BYTES = "received-bytes", "bytes of bodies in transfer or being read, except uploads"
    UNREAD_BYTES = "unread-bytes", "bytes of responses that clients have not read"
    UPLOADING_BYTES = "uploading-bytes", "bytes of uploads in transfer"
    DRY_RUNS = "dry-runs", "dry runs"
    WAITS = "waits", "uploads in transfer, waits for jobs and open progress streams"
    SETS = "sets", "sets to predict that are read or wait for it"
    ANSWERS = "answers", "predictions of many rows that are written or wait for it"
    UPLOADS = "uploads", "uploads that are checked or wait for it"
    DOCUMENTS = "documents", "reports, exports and other documents that are made or wait for it"

    def __init__(self, title: str, what: str) -> None:
        self.title = title
        self.what = what


class SharedAmount:
    """A limited amount of one thing; each tenant holds at most as much as is still free.

    A single tenant gets half of it, each of two a third; a single request counts as at most half.
    Where no tenants share it, the holder is None and only the total counts, and what exceeds it
    passes while nothing is held. Call it from one event loop only.

    Parameters
    ----------
    line : Line
    total : float
        The limit; infinite for what is only counted.
    retry_after : callable
        Returns the seconds until a retry may succeed.
    """

    def __init__(
        self,
        line: Line,
        total: float = math.inf,
        retry_after: Callable[[], int] = lambda: 5,
    ) -> None:
        self.line = line
        self.total = total
        self.taken = 0
        self._most = max(total / 2, 1)
        self._retry_after = retry_after
        self._held: Counter[UUID] = Counter()

    def held_by(self, holder: UUID | None) -> int:
        """Return how much a tenant holds."""
        return 0 if holder is None else self._held[holder]

    def counted(self, holder: UUID | None, amount: int) -> int:
        """Return how much of an amount counts: others need room beside it."""
        return amount if holder is None or amount <= self._most else int(self._most)

    def take(self, holder: UUID | None, amount: int = 1) -> None:
        """Take an amount.

        Raises
        ------
        ShareTaken, TooManyRequests
            If the tenant's share, or everything, is taken; nothing changes then.
        """
        amount, free = self.counted(holder, amount), self.total - self.taken
        if self.taken and amount > free:
            raise TooManyRequests(
                f"The limit `{self.line.title}` is reached: this process holds {self.taken} of "
                f"{self.total} {self.line.what}. Retry later.",
                retry_after=self._retry_after(),
            )
        if holder is not None:
            own = self._held[holder]
            if own and own + amount > free - amount:
                raise ShareTaken(
                    f"This tenant's share of the limit `{self.line.title}` is taken: it holds "
                    f"{own} of {self.total} {self.line.what}, and the rest is reserved for others. "
                    "Retry later.",
                    retry_after=self._retry_after(),
                )
        self.count(holder, amount)

    def count(self, holder: UUID | None, amount: int = 1) -> None:
        """Take an amount whether or not there is room."""
        amount = self.counted(holder, amount)
        self.taken += amount
        if holder is not None:
            self._held[holder] += amount

    def give_back(self, holder: UUID | None, amount: int = 1) -> None:
        """Give an amount back."""
        amount = self.counted(holder, amount)
        self.taken -= amount
        if holder is not None:
            self._held[holder] -= amount
            if not self._held[holder]:
                del self._held[holder]

    @contextmanager
    def held(self, holder: UUID | None, amount: int = 1) -> Iterator["Hold"]:
        """Hold an amount until the block ends; the block may take more.

        Raises
        ------
        ShareTaken, TooManyRequests
            As `take`.
        """
        with Hold(self, holder) as hold:
            hold.change_to(amount)
            yield hold


class Hold:
    """What one request holds of an amount."""

    __slots__ = ("_of", "amount", "holder")

    def __init__(self, of: SharedAmount, holder: UUID | None) -> None:
        self._of = of
        self.holder = holder
        self.amount = 0

    def move_to(self, holder: UUID | None) -> None:
        """Hold nothing as the former holder; hold for this tenant from now on."""
        if holder is not self.holder:
            self.change_to(0)
            self.holder = holder

    def change_to(self, amount: int) -> None:
        """Hold so much.

        Raises
        ------
        ShareTaken, TooManyRequests
            If there is no room for more; what was held stays.
        """
        amount = self._of.counted(self.holder, amount)
        if amount > self.amount:
            self._of.take(self.holder, amount - self.amount)
        elif amount < self.amount:
            self._of.give_back(self.holder, self.amount - amount)
        self.amount = amount

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.change_to(0)
