"""The verdict on a paired difference of scores."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from howsure.statistics.comparison import PairedDifference

Verdict: TypeAlias = Literal["same", "tie", "better", "worse"]

TIES: frozenset[Verdict] = frozenset({"same", "tie"})
LARGER_IS_BETTER = frozenset({"accuracy"})


def verdict(difference: Mapping[str, Any], score: str = "nll") -> Verdict:
    """Return whether a score minus the one it is compared with is clearly better or worse.

    Within two standard errors of 0 it is a tie; "same" is a difference of exactly 0 without error.
    """
    if difference["mean"] == 0.0 and not difference["standard_error"]:
        return "same"
    if not PairedDifference(**difference).clear:
        return "tie"
    return "better" if (difference["mean"] > 0) == (score in LARGER_IS_BETTER) else "worse"
