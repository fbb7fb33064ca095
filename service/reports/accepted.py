"""Accepted answers on a set: their error rate, and whether it contradicts a promised one."""

from collections.abc import Mapping
from typing import Any

from howsure.statistics.bins.intervals import proportion_interval
from service.reports.numbers import count, percent

LEVEL = 0.95
Counts = Mapping[str, Any]


def share_of(hits: int, count: int) -> dict[str, Any] | None:
    """Return a share with its exact interval; None of no samples."""
    if count == 0:
        return None
    return {
        "value": hits / count,
        "interval": list(proportion_interval(hits, count, LEVEL)),
        "n_samples": count,
    }


def error_rate(found: Counts | None) -> dict[str, Any] | None:
    """Return the counts of a set and its ``coverage``, with the error rate and its interval.

    None if there is no set or it has no accepted answer.
    """
    if found is None or not found["n_accepted"]:
        return None
    counts = {name: found[name] for name in ("n_samples", "n_accepted", "n_errors")}
    shares = share_of(found["n_errors"], found["n_accepted"]) or {}
    return shares | counts | {"coverage": found["n_accepted"] / found["n_samples"]}


def contradicts(found: Counts | None, max_risk: float) -> bool:
    """Tell whether the interval of an error rate lies above the promised one."""
    judged = error_rate(found)
    return judged is not None and bool(judged["interval"][0] > max_risk)


def rate_in_words(found: Counts, *, accepted: str = "") -> str:
    """Return an error rate like ``3 of 527 are wrong, 0.6 % (0.1 % to 1.7 %)``.

    ``accepted`` follows the counts.
    """
    judged = error_rate(found)
    if judged is None:
        return "no answers are accepted"
    lower, upper = map(percent, judged["interval"])
    return (
        f"{count(judged['n_errors'])} of {count(judged['n_accepted'])}{accepted} are wrong, "
        f"{percent(judged['value'])} ({lower} to {upper})"
    )
