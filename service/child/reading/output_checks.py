"""Rules of logits and probabilities, and what numbers that break them probably are."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats
from service.errors import InvalidDataset
from service.runner.messages.dataset import DatasetKind

SUM_TOLERANCE = 1e-3
# Floats of decimals such as 0.333 miss them by less than this.
FLOAT_ERROR = 1e-6
# Quantised probabilities are multiples of one of these, to this share of a step.
STEPS = (1 / 255, 1 / 256)
STEP_ERROR = 1e-3
MOST_ROUNDED = 0.05
PERCENT = 100.0
FEWEST_ROWS = 5  # of logits that do not sum to 100 by chance
AS_LOGITS = (
    f"expected logits, got percentages, which sum to {PERCENT:g} in each row; divide by "
    f"{PERCENT:g}, and send probabilities as `probabilities`"
)
PERCENTAGES = f"the row sums to {PERCENT:g}, so these are percentages: divide by {PERCENT:g}"


def check_outputs(
    values: NDArray[np.floating],
    *,
    kind: DatasetKind,
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
        If a value is not finite, a probability is negative or above one, or a row of
        probabilities does not sum to one within 1e-3.
    """
    bad = ~np.isfinite(values)
    if kind == "probabilities":
        # Ends of exactly 0 and 1 would refuse a float16 softmax or a forest for their rounding.
        bad |= (values < -SUM_TOLERANCE) | (values > 1 + SUM_TOLERANCE)
    if bad.any():
        row, column = (int(at) for at in np.unravel_index(np.argmax(bad), bad.shape))
        cell = f"{place}[{start + row}][{column}]"
        if cell_place is not None:
            cell = cell_place(start + row, column)
        raise InvalidDataset.at(cell, _refused_output(values[row], column, kind))
    if kind == "logits":
        return
    bad = are_off(values)
    if bad.any():
        row = int(np.argmax(bad))
        wrong = values[row].astype(np.float64)
        raise InvalidDataset.at(
            f"{place}[{start + row}]",
            f"expected probabilities that sum to 1 within {SUM_TOLERANCE}, got {wrong.sum():.6g}; "
            + sum_advice(wrong),
        )


def are_off(values: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Tell which rows of probabilities do not sum to 1 within the tolerance.

    Probabilities in steps of 8 bits may each be off by half a step.
    """
    rows = np.asarray(values, dtype=np.float64)
    distance = np.abs(rows.sum(axis=1) - 1.0) - FLOAT_ERROR
    is_off = distance > SUM_TOLERANCE
    for step in STEPS if is_off.any() else ():
        whole = rows / step
        in_steps = np.abs(whole - np.round(whole)).max(axis=1, initial=0.0) <= STEP_ERROR
        is_off &= ~in_steps | (distance > min(rows.shape[1] * step / 2, MOST_ROUNDED))
    return np.asarray(is_off)


# Numbers that logits would hardly be by chance: three of one row, or two rows of two.
FEWEST_NUMBERS = 3


def are_distributions(scores: NDArray[np.floating]) -> bool:
    """Tell whether all rows of scores are probabilities that sum to 1, not only of 0 and 1."""
    if scores.size < FEWEST_NUMBERS or (scores < 0.0).any() or (scores > 1.0).any():
        return False
    has_fractions = bool((scores % 1.0 > 0.0).any())
    return has_fractions and not are_off(scores).any()


def are_percentages(scores: NDArray[np.floating]) -> bool:
    """Tell whether all of several rows of scores are percentages that sum to 100."""
    if len(scores) < FEWEST_ROWS or scores.shape[1] == 1 or (scores < 0.0).any():
        return False
    return bool((np.abs(scores.sum(axis=1, dtype=np.float64) - PERCENT) <= PERCENT / 100).all())


def sum_advice(row: Floats) -> str:
    """Return what to do about a row of probabilities that does not sum to 1."""
    if _is_percentage(row):
        return PERCENTAGES
    off = abs(row.sum() - 1.0)
    for decimals in (1, 2, 3):
        is_rounded = np.allclose(row, row.round(decimals), rtol=0.0, atol=FLOAT_ERROR)
        if is_rounded and off <= len(row) / 2 * 10.0**-decimals + FLOAT_ERROR:
            return (
                f"they are rounded to {decimals} decimals: send more, or divide each row by its sum"
            )
    return "independent sigmoids are no distribution over classes"


def _is_percentage(row: NDArray[np.floating]) -> bool:
    return bool((row >= 0.0).all() and abs(row.sum() - PERCENT) <= PERCENT / 100)


def _refused_output(row: NDArray[np.floating], column: int, kind: str) -> str:
    value = row[column]
    if kind == "logits" and value == -np.inf:
        return (
            f"expected a finite number, got {value}; for a class that is ruled out send a very low "
            "logit, such as -10000"
        )
    if not np.isfinite(value):
        return f"expected a finite number, got {value}"
    fix = "send logits under the name of logits"
    if _is_percentage(row):
        fix = PERCENTAGES
    return f"expected a probability from 0 to 1, got {value}; {fix}"
