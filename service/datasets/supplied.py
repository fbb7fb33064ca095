"""Uncertainties that come with a set, in columns ``uncertainty_<name>``: names and values."""

import re
from collections.abc import Iterable

import numpy as np

from service.core.arrays import Floats
from service.datasets.dataset import AnyArray
from service.errors import InvalidDataset, TooLarge

SUPPLIED_PREFIX = "uncertainty_"
# Each becomes a measure with tables of its own.
MAX_SUPPLIED = 100

_NAME = re.compile(r"[A-Za-z0-9_]{1,50}")
_SHOWN_CHARACTERS = 80


def supplied_names(columns: Iterable[str], *, location: str) -> tuple[str, ...]:
    """Return the names behind the prefix, of those among ``columns`` that have it.

    Raises
    ------
    InvalidDataset
        If a name is empty, longer than 50 characters, or has others than ASCII letters, digits
        and underscores.
    TooLarge
        If there are more than 100.
    """
    names: list[str] = []
    for column in columns:
        if not column.startswith(SUPPLIED_PREFIX):
            continue
        name = column.removeprefix(SUPPLIED_PREFIX)
        if not _NAME.fullmatch(name):
            raise InvalidDataset.at(
                location,
                f"expected `{SUPPLIED_PREFIX}` and then 1 to 50 ASCII letters, digits or "
                f"underscores, got {column[:_SHOWN_CHARACTERS]!a}",
            )
        names.append(name)
    if len(names) > MAX_SUPPLIED:
        raise TooLarge.at(
            location,
            f"expected at most {MAX_SUPPLIED} columns `{SUPPLIED_PREFIX}<name>`, got {len(names)}",
        )
    return tuple(names)


def check_supplied(values: AnyArray, *, place: str, start: int) -> Floats:
    """Return a slice of a column as float64, its numbers finite in float32.

    That is the precision uncertainties are binned in. ``start`` is the row of the first.

    Raises
    ------
    InvalidDataset
        If a value is NaN, infinite, or too large for float32.
    """
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused below
        bad = ~np.isfinite(values.astype(np.float32))
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidDataset.at(
            f"{place}[{start + row}]",
            f"expected a number that is finite in float32, got {values[row]}",
        )
    return values.astype(np.float64)
