"""Rows and columns of a later set that are unlike those of the calibration set."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.column_middles import ColumnMiddles
from howsure.statistics.input_ranges import ColumnRanges, InputRange, InputRanges, row_extents

# Two numbers of each column.
Ends: TypeAlias = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True)
class UnlikeRows:
    """Rows of a further set that are unlike all rows of the calibration set, or nearly all.

    ``least`` and ``most`` are of one input in that set, or of its ``column`` if it has a name;
    ``known_least`` and ``known_most`` in the calibration set. If ``is_middle``, they are the ends
    of the middle of the column. If the rows lack a value in the column, ``known_missing`` is the
    share of the calibration set that does, else None.
    """

    rows: int
    samples: int
    least: float
    most: float
    known_least: float
    known_most: float
    column: str = ""
    is_middle: bool = False
    known_missing: float | None = None


@dataclass(frozen=True)
class NamedColumns:
    """The columns of an input: names, and ranges and middles in the calibration set, if known.

    Columns without names are called by their positions, from 0.
    """

    names: Sequence[str]
    ranges: ColumnRanges
    middles: ColumnMiddles | None = None


class ComparedInputs:
    """Counts the rows of a further set that are unlike the calibration set, batch by batch."""

    def __init__(
        self, known: Mapping[str, InputRange], columns: Mapping[str, NamedColumns]
    ) -> None:
        self._known = known
        self._columns = columns
        self._own = InputRanges()
        self._rows = Counter[str]()
        self._rows_of_columns: dict[str, NDArray[np.int64]] = {}
        self._beyond: dict[str, NDArray[np.int64]] = {}
        self._missing: dict[str, NDArray[np.int64]] = {}
        self._samples = 0

    @property
    def worst(self) -> UnlikeRows | None:
        """The input or column with the most unlike rows, or None if there are none.

        A column says more than an input: half as many rows suffice.
        """
        found = [*self._of_inputs(), *self._of_columns(), *self._of_middles(), *self._of_missing()]
        return max(found, key=lambda one: one.rows * (2 if one.column else 1), default=None)

    def add(self, inputs: Mapping[str, NDArray[Any]]) -> None:
        """Add the rows of a batch, by input."""
        self._own.add(inputs)
        for name, values in inputs.items():
            if name in self._known:
                least, most = (found.astype(np.float64) for found in row_extents(values))
                self._rows[name] += int(np.count_nonzero(self._known[name].is_unlike(least, most)))
            if name in self._columns:
                known = self._columns[name]
                is_missing = np.isnan(values)
                counts = np.count_nonzero(known.ranges.outside(values) & ~is_missing, axis=0)
                self._rows_of_columns[name] = self._rows_of_columns.get(name, 0) + counts
                missing = np.count_nonzero(is_missing, axis=0)
                self._missing[name] = self._missing.get(name, 0) + missing
                if known.middles is not None:
                    self._beyond[name] = self._beyond.get(name, 0) + known.middles.beyond(values)
        self._samples += len(next(iter(inputs.values()), ()))

    def _of_inputs(self) -> Iterator[UnlikeRows]:
        for name, rows in self._rows.items():
            if rows:
                own, known = self._own.range_of(name), self._known[name]
                ends = own.least, own.most, known.least, known.most
                yield UnlikeRows(rows, self._samples, *ends)

    def _of_columns(self) -> Iterator[UnlikeRows]:
        own = self._own.columns
        for name, counts in self._rows_of_columns.items():
            known = self._columns[name]
            yield from self._worst_column(
                known.names,
                counts,
                (own[name].least, own[name].most),
                (known.ranges.least, known.ranges.most),
            )

    def _of_middles(self) -> Iterator[UnlikeRows]:
        own = self._own.middles
        for name, beyond in self._beyond.items():
            names, known = self._columns[name].names, self._columns[name].middles
            if known is not None:
                counts = known.moved(own[name], beyond, self._samples)
                ends = (own[name].low, own[name].high), (known.low, known.high)
                yield from self._worst_column(names, counts, *ends, is_middle=True)

    def _of_missing(self) -> Iterator[UnlikeRows]:
        own = self._own.columns
        for name, missing in self._missing.items():
            names, known = self._columns[name].names, self._columns[name].ranges
            ends = (own[name].least, own[name].most), (known.least, known.most)
            counts = known.more_missing(missing, self._samples)
            for found in self._worst_column(names, counts, *ends):
                share = known.missing[names.index(found.column)] if known.missing else 0.0
                yield replace(found, known_missing=share)

    def _worst_column(
        self,
        names: Sequence[str],
        counts: NDArray[np.int64],
        own: Ends,
        known: Ends,
        *,
        is_middle: bool = False,
    ) -> Iterator[UnlikeRows]:
        """Yield the column with the most of these rows, if there are any."""
        at = int(counts.argmax())
        if counts[at]:
            least, most, known_least, known_most = (ends[at] for ends in (*own, *known))
            yield UnlikeRows(
                rows=int(counts[at]),
                samples=self._samples,
                least=least,
                most=most,
                known_least=known_least,
                known_most=known_most,
                column=names[at],
                is_middle=is_middle,
            )
