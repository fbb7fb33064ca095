"""Consecutive rows of a table, and how slices of any length become slices of one length."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from service.core.arrays import Floats, Labels
from service.datasets.dataset import AnyArray


@dataclass(frozen=True)
class TableSlice:
    """Some consecutive rows, or all the rows a batch needs."""

    labels: Labels
    arrays: dict[str, AnyArray]
    supplied: dict[str, Floats]

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, start: int, stop: int) -> "TableSlice":
        """Return the rows from ``start`` to before ``stop``, as views."""
        return TableSlice(
            self.labels[start:stop],
            {name: values[start:stop] for name, values in self.arrays.items()},
            {name: values[start:stop] for name, values in self.supplied.items()},
        )


def resized(slices: Iterable[TableSlice], size: int) -> Iterator[TableSlice]:
    """Yield the same rows in slices of ``size``, the last maybe shorter."""
    pending: list[TableSlice] = []
    n_pending = 0
    for found in slices:
        rest = found
        while n_pending + len(rest) >= size:
            taken = size - n_pending
            yield _joined([*pending, rest.rows(0, taken)])
            rest = rest.rows(taken, len(rest))
            pending, n_pending = [], 0
        if len(rest):
            pending.append(rest)
            n_pending += len(rest)
    if pending:
        yield _joined(pending)


def _joined(slices: Sequence[TableSlice]) -> TableSlice:
    return TableSlice(
        np.concatenate([found.labels for found in slices]),
        {
            name: np.concatenate([found.arrays[name] for found in slices])
            for name in slices[0].arrays
        },
        {
            name: np.concatenate([found.supplied[name] for found in slices])
            for name in slices[0].supplied
        },
    )
