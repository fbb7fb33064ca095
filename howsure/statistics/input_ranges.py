"""Inputs far outside the numbers of the calibration set, such as pixels up to 255 instead of 1.

A model is often confident on such rows, so that no uncertainty shows them.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats

Extent = TypeVar("Extent", float, Floats)

# A row of an input is still known if its numbers spread by this share of the least spread.
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

        They leave room: the width of the range at either end, and a tenth of the least spread.
        Rounded to float32, so that they mean the same in a graph.
        """
        width = self.most - self.least
        found = (self.least - width, self.most + width, LEAST_SHARE * self.least_spread)
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
    """Collects the ranges of some inputs, batch by batch."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._found: dict[str, InputRange] = {}

    def add(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Add rows by input; a single input may have any name.

        Arrays of other names, and of one number a row, are left out.
        """
        for name in self._names:
            values = next(iter(arrays.values())) if len(arrays) == 1 else arrays.get(name)
            if values is not None and values[0].size > 1:
                self._add(name, *row_extents(values))

    def as_dict(self) -> dict[str, dict[str, float]]:
        """Return the ranges as plain data, by input; inputs of one constant number have none."""
        return {
            name: asdict(found) for name, found in self._found.items() if found.least < found.most
        }

    def _add(self, name: str, least: NDArray[np.float32], most: NDArray[np.float32]) -> None:
        spread = most.astype(np.float64) - least
        own = InputRange(float(least.min()), float(most.max()), float(spread.min()))
        known = self._found.get(name, own)
        self._found[name] = InputRange(
            min(known.least, own.least),
            max(known.most, own.most),
            min(known.least_spread, own.least_spread),
        )
