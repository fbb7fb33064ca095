"""Refusals of logits and probabilities that break the rules of their kind."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from howsure.outputs import PERCENT, OutputKind, broken_rule
from service.errors import InvalidDataset

AS_LOGITS = (
    f"expected logits, got percentages, which sum to {PERCENT:g} in each row; divide by "
    f"{PERCENT:g}, and send probabilities as `probabilities`"
)


def check_outputs(
    values: NDArray[np.floating],
    *,
    kind: OutputKind,
    place: str,
    start: int,
    cell_place: Callable[[int, int], str] | None = None,
) -> None:
    """Refuse a batch of logits or probabilities that breaks the rules of its kind.

    A row of ``place`` has a number of its own. ``cell_place`` is the place of a row and a column,
    if that is not the column by number.

    Raises
    ------
    InvalidDataset
        If it breaks one.
    """
    broken = broken_rule(values, kind)
    if broken is None:
        return
    row, column = start + broken.row, broken.column
    at = f"{place}[{row}]"
    if column is not None:
        at = f"{at}[{column}]" if cell_place is None else cell_place(row, column)
    raise InvalidDataset.at(at, broken.rule)
