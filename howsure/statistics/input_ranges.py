"""Inputs far outside the numbers of the calibration set, such as pixels up to 255 instead of 1.

A model is often confident on such rows, so that no uncertainty shows them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats
from howsure.statistics.column_middles import LEAST_BEYOND, LEAST_FACTOR, ColumnMiddles, EvenRows

Extent = TypeVar("Extent", float, Floats)
# The least and the largest number of each row, shape (n_rows,) each.
RowExtents: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32]]

# How far outside a row may lie, as a share of the width of the range: pixels from -0.5 to 0.5 are
# unlike those from 0 to 1.
ROOM = 0.4
# Its numbers may spread by this share of the least spread.
LEAST_SHARE = 0.1
LARGEST = float(np.finfo(np.float32).max)


def finite_row_extents(values: NDArray[np.float32]) -> RowExtents | None:
    """Return the `row_extents` of finite numbers; None if one of them is not finite.

    The least and the largest number of a row are NaN if it has one, and an infinity is one of them.
    """
    rows = values.reshape(len(values), -1)
    least, most = np.minimum.reduce(rows, axis=1), np.maximum.reduce(rows, axis=1)
    return (least, most) if np.isfinite((least, most)).all() else None


def row_extents(values: NDArray[Any]) -> RowExtents:
    """Return the least and the largest number of each row, shape (n_rows,) each.

    Missing values, NaN, are left out. A row of nothing else has the largest float32 as its least
    number and minus that as its largest one, so it is unlike all rows.
    """
    rows = values.reshape(len(values), -1)
    least, most = np.minimum.reduce(rows, axis=1), np.maximum.reduce(rows, axis=1)
    if rows.dtype.kind == "f" and np.isnan(least).any():
        least = np.nan_to_num(np.fmin.reduce(rows, axis=1), nan=LARGEST)
        most = np.nan_to_num(np.fmax.reduce(rows, axis=1), nan=-LARGEST)
    if least.dtype != np.float32:
        least, most = (
            np.clip(found, -LARGEST, LARGEST, dtype=np.float64).astype(np.float32)
            for found in (least, most)
        )
    return least, most


@dataclass(frozen=True)
class InputRange:
    """The numbers of one input in a calibration set.

    Attributes
    ----------
    least, most : float
        The least and the largest number of all rows.
    least_spread : float
        The least difference between the largest and the least number of one row.
    """

    least: float
    most: float
    least_spread: float

    @cached_property
    def bounds(self) -> tuple[float, float, float]:
        """The least number and the largest number of a known row, and its least spread.

        They leave room: 0.4 of the width of the range at either end, and a tenth of the spread.
        Rounded to float32, so that they mean the same in a graph.
        """
        room = ROOM * (self.most - self.least)
        found = (self.least - room, self.most + room, LEAST_SHARE * self.least_spread)
        least, most, spread = np.clip(found, -LARGEST, LARGEST).astype(np.float32).tolist()
        return least, most, spread

    def is_unlike(self, least: Extent, most: Extent) -> bool | NDArray[np.bool_]:
        """Return whether rows with these extents, in float64, are unlike all rows of the set."""
        lowest, highest, narrowest = self.bounds
        found: bool | NDArray[np.bool_] = (
            (least < lowest) | (most > highest) | (most - least < narrowest)
        )
        return found


# How far outside a single column may lie, in widths of its own range. With 200 samples of real
# tables, fewer than 1 in 200 new rows lie further outside.
COLUMN_ROOM = 1.0
MOST_HALF_WIDTHS = 1.0 + 2.0 * COLUMN_ROOM  # from the centre of the column
# Wider arrays are no tables of features.
TABLE_AXES, MOST_COLUMNS = 2, 256


@dataclass(frozen=True)
class ColumnRanges:
    """The least and the largest number of each column of an input, in its order.

    ``missing`` is the share of rows without a value in each column; it is empty if all have one.
    Columns without any value have the range 0 to 0.
    """

    least: tuple[float, ...]
    most: tuple[float, ...]
    missing: tuple[float, ...] = ()

    @cached_property
    def scaling(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The centre of each column, and the factor from numbers to half widths, each (n,).

        A constant column has the factor 0: nothing is outside of it.
        """
        least, most = np.array(self.least), np.array(self.most)
        half = np.clip((most - least) / 2.0, 0.0, LARGEST)
        with np.errstate(divide="ignore"):
            factor = np.where(half > 1.0 / LARGEST, 1.0 / half, 0.0)
        centre = np.clip(least / 2.0 + most / 2.0, -LARGEST, LARGEST)
        return centre.astype(np.float32), factor.astype(np.float32)

    def outside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which numbers of rows lie outside their column by more than its width.

        A missing value, NaN, is outside where the column has none in the calibration set. All
        numbers are outside if there are more or fewer columns.
        """
        centre, factor = self.scaling
        if values.shape[1:] != centre.shape:
            return np.ones(values.shape, np.bool_)
        if values.dtype != np.float32:
            values = np.clip(values, -LARGEST, LARGEST, dtype=np.float64).astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            found = np.abs((values - centre) * factor)
        return np.asarray((found > MOST_HALF_WIDTHS) | (np.isnan(values) & self.is_complete))

    def more_missing(self, rows: NDArray[np.int64], samples: int) -> NDArray[np.int64]:
        """Return how many rows of a further set lack a value where few did before, shape (n,).

        ``rows`` is how many lack one in each column. All of them count where every row of the
        calibration set has one; else if 60 % lack one, and the share of those that lack one was a
        third or less, or that of those that have one is a third or less of what it was.
        """
        missing, share = self._missing, rows / max(samples, 1)
        is_other = (LEAST_FACTOR * missing <= share) | (
            LEAST_FACTOR * (1.0 - share) <= 1.0 - missing
        )
        is_more = (share >= LEAST_BEYOND) & (missing < 1.0) & is_other
        return np.where(self.is_complete | is_more, rows, 0)

    @cached_property
    def is_complete(self) -> NDArray[np.bool_]:
        """Which columns have a value in every row of the calibration set, shape (n,)."""
        return np.asarray(self._missing == 0.0)

    @property
    def _missing(self) -> Floats:
        return np.array(self.missing or (0.0,) * len(self.least))


class InputRanges:
    """Collects the range of each input of a set, and what its columns hold, batch by batch."""

    def __init__(self) -> None:
        self._found: dict[str, InputRange] = {}
        self._columns: dict[str, NDArray[np.float64]] = {}
        self._missing: dict[str, NDArray[np.int64]] = {}
        self._n_rows = 0
        self._rows: dict[str, EvenRows] = {}

    @property
    def found(self) -> dict[str, InputRange]:
        """The ranges by input; inputs of a constant, and of one number a row, have none."""
        return {name: found for name, found in self._found.items() if found.least < found.most}

    @property
    def columns(self) -> dict[str, ColumnRanges]:
        """The ranges of columns, of each input of two axes and not too many columns."""
        return {name: self._ranges(name, *ends) for name, ends in self._columns.items()}

    @property
    def middles(self) -> dict[str, ColumnMiddles]:
        """The middles of the same columns."""
        return {name: found.middles for name, found in self._rows.items()}

    def range_of(self, name: str) -> InputRange:
        """Return the range of an input, which may be constant, or 0 to 0 without any value."""
        return self._found.get(name, InputRange(0.0, 0.0, 0.0))

    def add(self, inputs: Mapping[str, NDArray[Any]]) -> None:
        """Add the rows of a batch, by input."""
        for name, values in inputs.items():
            if values.ndim == TABLE_AXES and values.shape[1] <= MOST_COLUMNS:
                ends = np.stack([np.fmin.reduce(values), np.fmax.reduce(values)]).astype(np.float64)
                known = self._columns.get(name, ends)
                self._columns[name] = np.stack(
                    [np.fmin(known[0], ends[0]), np.fmax(known[1], ends[1])]
                )
                missing = np.count_nonzero(np.isnan(values), axis=0)
                self._missing[name] = self._missing.get(name, 0) + missing
                self._rows.setdefault(name, EvenRows()).add(values)
            if values[0].size > 1:
                self._add(name, *row_extents(values))
        self._n_rows += len(next(iter(inputs.values()), ()))

    def _ranges(self, name: str, least: Floats, most: Floats) -> ColumnRanges:
        missing = self._missing[name]
        shares = (missing / self._n_rows).tolist() if missing.any() else ()
        # A column without any value is a constant.
        low, high = (tuple(np.nan_to_num(end, nan=0.0).tolist()) for end in (least, most))
        return ColumnRanges(low, high, tuple(shares))

    def _add(self, name: str, least: NDArray[np.float32], most: NDArray[np.float32]) -> None:
        has_values = least <= most
        if not has_values.any():
            return
        least, most = least[has_values], most[has_values]
        spread = most.astype(np.float64) - least
        own = InputRange(float(least.min()), float(most.max()), float(spread.min()))
        known = self._found.get(name, own)
        self._found[name] = InputRange(
            min(known.least, own.least),
            max(known.most, own.most),
            min(known.least_spread, own.least_spread),
        )
