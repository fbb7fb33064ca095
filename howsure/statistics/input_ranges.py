"""Inputs far outside the numbers of the calibration set, such as pixels up to 255 instead of 1.

A model is often confident on such rows, so that no uncertainty shows them.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats

Extent = TypeVar("Extent", float, Floats)

# How far outside a row may lie, as a share of the width of the range: pixels from -0.5 to 0.5 are
# unlike those from 0 to 1.
ROOM = 0.4
# Its numbers may spread by this share of the least spread.
LEAST_SHARE = 0.1
LARGEST = float(np.finfo(np.float32).max)


def row_extents(values: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the least and the largest number of each row, shape (n_rows,) each."""
    rows = values.reshape(len(values), -1)
    least, most = np.minimum.reduce(rows, axis=1), np.maximum.reduce(rows, axis=1)
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


class InputRanges:
    """Collects the range of each input of a set, batch by batch."""

    def __init__(self) -> None:
        self._found: dict[str, InputRange] = {}

    @property
    def found(self) -> dict[str, InputRange]:
        """The ranges by input; inputs of a constant, and of one number a row, have none."""
        return {name: found for name, found in self._found.items() if found.least < found.most}

    def range_of(self, name: str) -> InputRange:
        """Return the range of an input, which may be constant."""
        return self._found[name]

    def add(self, inputs: Mapping[str, NDArray[Any]]) -> None:
        """Add the rows of a batch, by input."""
        for name, values in inputs.items():
            if values[0].size > 1:
                self._add(name, *row_extents(values))

    def _add(self, name: str, least: NDArray[np.float32], most: NDArray[np.float32]) -> None:
        spread = most.astype(np.float64) - least
        own = InputRange(float(least.min()), float(most.max()), float(spread.min()))
        known = self._found.get(name, own)
        self._found[name] = InputRange(
            min(known.least, own.least),
            max(known.most, own.most),
            min(known.least_spread, own.least_spread),
        )


@dataclass(frozen=True)
class UnlikeRows:
    """Rows of a further set that are unlike all rows of the calibration set, by one input.

    ``least`` and ``most`` are of the input in that set, ``known_least`` and ``known_most`` in the
    calibration set.
    """

    rows: int
    samples: int
    least: float
    most: float
    known_least: float
    known_most: float


class ComparedInputs:
    """Counts the rows of a further set that are unlike the calibration set, batch by batch."""

    def __init__(self, known: Mapping[str, InputRange]) -> None:
        self._known = known
        self._own = InputRanges()
        self._rows = Counter[str]()
        self._samples = 0

    @property
    def worst(self) -> UnlikeRows | None:
        """The input with the most such rows; None if there are none."""
        if not self._rows.total():
            return None
        ((name, rows),) = self._rows.most_common(1)
        own, known = self._own.range_of(name), self._known[name]
        return UnlikeRows(rows, self._samples, own.least, own.most, known.least, known.most)

    def add(self, inputs: Mapping[str, NDArray[Any]]) -> None:
        """Add the rows of a batch, by input."""
        self._own.add(inputs)
        for name, values in inputs.items():
            if name in self._known:
                least, most = (found.astype(np.float64) for found in row_extents(values))
                self._rows[name] += int(np.count_nonzero(self._known[name].is_unlike(least, most)))
        self._samples += len(next(iter(inputs.values()), ()))
