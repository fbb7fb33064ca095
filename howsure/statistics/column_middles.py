"""The middle of each column of a table, to find a whole set with a column in another unit, or lost.

A unit that makes numbers smaller leaves each of them in its known range: monthly incomes lie among
yearly ones, shares among percentages. Only many rows together show it. So it is with a column that
is filled with zeros because its values are missing.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Quantiles at the ends of the middle of a column.
LOW, HIGH = 0.1, 0.9
# A set is in another unit if this share of it lies beyond one end, where a tenth is expected, and
# its own middle is wider or narrower by this factor. Data of another time or place moves, too, but
# rarely changes its width so.
LEAST_BEYOND, LEAST_FACTOR = 0.6, 3.0
LEAST_SAMPLES = 20
# Rows of which quantiles are taken.
MOST_KEPT = 4096


@dataclass(frozen=True)
class ColumnMiddles:
    """The 10 % and the 90 % quantile of each column of an input, in its order."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def beyond(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many numbers of each column lie below and above its middle, shape (2, n).

        All are 0 if the rows have another number of columns.
        """
        if values.shape[1:] != (len(self.low),):
            return np.zeros((2, len(self.low)), np.int64)
        counted = [
            np.count_nonzero(found, axis=0) for found in (values < self.low, values > self.high)
        ]
        return np.stack(counted)

    def moved(
        self, own: "ColumnMiddles", beyond: NDArray[np.int64], samples: int
    ) -> NDArray[np.int64]:
        """Return how many rows of each column are in another unit, or zeros, shape (n,).

        ``own`` is the middle of these rows; ``beyond`` counts those outside of this one.
        """
        found = beyond.max(axis=0)
        if samples < LEAST_SAMPLES:
            return np.zeros_like(found)
        widths, known = (np.subtract(one.high, one.low) for one in (own, self))
        is_wider = (widths >= LEAST_FACTOR * known) | (known >= LEAST_FACTOR * widths)
        is_moved = found >= LEAST_BEYOND * samples
        is_other = is_wider & (widths > 0.0) & (known > 0.0)
        # Other constants are ordinary: of the data of one month, the month.
        are_zeros = (np.array(own.low) == 0.0) & (np.array(own.high) == 0.0)
        return np.where(is_moved & (is_other | are_zeros), found, 0)


class EvenRows:
    """Keeps rows of a set at even distances, batch by batch; 4,096 at most."""

    def __init__(self) -> None:
        self._kept: list[NDArray[Any]] = []
        self._distance, self._seen = 1, 0

    @property
    def middles(self) -> ColumnMiddles:
        """The middles of their columns."""
        rows = np.concatenate(self._kept)
        if np.isnan(rows).any():
            return _middles_of_values(rows)
        low, high = np.quantile(rows.astype(np.float64), (LOW, HIGH), axis=0).tolist()
        return ColumnMiddles(tuple(low), tuple(high))

    def add(self, rows: NDArray[Any]) -> None:
        """Add the rows of a batch, of shape (n_rows, n)."""
        self._kept.append(rows[-self._seen % self._distance :: self._distance].copy())
        self._seen += len(rows)
        while sum(map(len, self._kept)) > MOST_KEPT:
            self._distance *= 2
            self._kept = [np.concatenate(self._kept)[::2]]


def _middles_of_values(rows: NDArray[Any]) -> ColumnMiddles:
    """Return the middles of the values there are; a column without any has 0 to 0."""
    is_empty = np.isnan(rows).all(axis=0)
    filled = np.where(is_empty, 0.0, rows.astype(np.float64))
    low, high = np.nanquantile(filled, (LOW, HIGH), axis=0).tolist()
    return ColumnMiddles(tuple(low), tuple(high))
