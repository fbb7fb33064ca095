"""Verdicts on paired differences of scores, and on calibration errors."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from howsure.statistics.comparison import PairedDifference

Verdict: TypeAlias = Literal["same", "tie", "better", "worse"]
# Why a comparison of two calibrations names no better one.
Undecided: TypeAlias = Literal["warnings", "accuracy"]

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


def compared_verdict(event: Mapping[str, Any], score: str) -> Verdict | None:
    """Return the verdict on a score of two calibrations; None if it names no better one.

    ``event`` is one of a comparison's ``events``.
    """
    undecided: Undecided | None = event["undecided"]
    if undecided == "warnings" or (undecided == "accuracy" and score not in LARGER_IS_BETTER):
        return None
    return verdict(event["differences"][score], score)


def is_chance(judged: Mapping[str, Any]) -> bool:
    """Tell whether a calibration error is not distinguishable from that of a calibrated method.

    Parameters
    ----------
    judged
        A measure or baseline of a report, with the band of its calibration error.
    """
    band = _band(judged)
    return band is not None and bool(band["consistent"])


def chance_limit(judged: Mapping[str, Any]) -> float:
    """Return the 99 % quantile of that error of a calibrated method; 0 without a band."""
    return float((_band(judged) or {}).get("upper", 0.0))


def _band(judged: Mapping[str, Any]) -> Mapping[str, Any] | None:
    evaluated = judged["evaluation"] is not None
    band: Mapping[str, Any] | None = judged.get("evaluation_ece_band" if evaluated else "ece_band")
    return band
