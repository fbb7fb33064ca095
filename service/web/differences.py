"""Differences as words: which of two is better, or that it may be chance."""

from collections.abc import Mapping
from typing import Any

from service.core.paired import PairedDifference

BETTER, WORSE, TIE, SAME = "clearly better", "clearly worse", "tie: may be chance", "the same"
LARGER_IS_BETTER = frozenset({"accuracy"})


def verdict_of(difference: Mapping[str, Any] | None, score: str = "nll") -> str | None:
    """Return what a difference says of the one that the other is taken from; None without one."""
    if difference is None:
        return None
    if difference["mean"] == 0.0 and not difference["standard_error"]:
        return SAME
    if not PairedDifference(**difference).clear:
        return TIE
    return BETTER if (difference["mean"] > 0) == (score in LARGER_IS_BETTER) else WORSE
