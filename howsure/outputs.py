"""Rules of logits and probabilities, and what numbers that break them probably are."""

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats

OutputKind: TypeAlias = Literal["logits", "probabilities"]
Precision: TypeAlias = Literal["float32", "float64"]

SUM_TOLERANCE = 1e-3
# Floats of decimals such as 0.333 miss them by less than this.
FLOAT_ERROR = 1e-6
# Quantised probabilities are multiples of one of these, to this share of a step.
STEPS = (1 / 255, 1 / 256)
STEP_ERROR = 1e-3
MOST_ROUNDED = 0.05
PERCENT = 100.0
FEWEST_ROWS = 5  # of logits that do not sum to 100 by chance
# Numbers that logits would hardly be by chance: three of one row, or two rows of two.
FEWEST_NUMBERS = 3
PERCENTAGES = f"the row sums to {PERCENT:g}, so these are percentages: divide by {PERCENT:g}"


class BrokenRule(NamedTuple):
    """The first row that breaks a rule, the column if it is one value, and the rule."""

    row: int
    column: int | None
    rule: str


def broken_rule(values: NDArray[np.floating], kind: OutputKind) -> BrokenRule | None:
    """Return the first rule that outputs break, or None.

    Values are finite. Probabilities lie in [0, 1], and a row of them sums to 1, within 1e-3 each.
    """
    bad = ~np.isfinite(values)
    if kind == "probabilities":
        # Ends of exactly 0 and 1 would refuse a float16 softmax or a forest for their rounding.
        bad |= (values < -SUM_TOLERANCE) | (values > 1 + SUM_TOLERANCE)
    if bad.any():
        row, column = (int(at) for at in np.unravel_index(np.argmax(bad), bad.shape))
        return BrokenRule(row, column, _rule_of_value(values[row], column, kind))
    if kind == "logits" or not (off := are_off(values)).any():
        return None
    row = int(np.argmax(off))
    wrong = values[row].astype(np.float64)
    expected = f"expected probabilities that sum to 1 within {SUM_TOLERANCE}"
    return BrokenRule(row, None, f"{expected}, got {wrong.sum():.6g}; {sum_advice(wrong)}")


def log_scores(values: NDArray[np.floating], kind: OutputKind) -> Floats:
    """Return logits, or the logarithms of probabilities, float64."""
    scores = values.astype(np.float64)
    if kind == "logits":
        return scores
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(scores, 0.0)))  # rounding may leave a -1e-7


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


def _rule_of_value(row: NDArray[np.floating], column: int, kind: OutputKind) -> str:
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
