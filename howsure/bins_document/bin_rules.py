"""Rules for the bins of a table: its numbers must agree with one another."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from howsure.bins_document.table import Bin
from howsure.statistics.bins.prior import odds_ratio

TOLERANCE = 1e-9


def is_float32(values: ArrayLike) -> NDArray[np.bool_]:
    """Return which numbers are exact in float32."""
    wide = np.asarray(values, np.float64)
    with np.errstate(over="ignore"):
        return np.asarray(wide.astype(np.float32) == wide)


def broken_bins(
    bins: Sequence[Bin], *, accuracy: float, n_samples: int, interpolated: bool
) -> Iterator[tuple[str, str]]:
    """Yield the place and the message of broken rules, by bin and then by rule.

    Edges ascend without gaps and are exact in float32. A bin has at most as many hits as samples,
    and its probability lies in its interval. Weight and odds ratio, if present, agree with the
    other values. Counts sum to ``n_samples``. Means of an interpolated table ascend.
    """
    with np.errstate(over="ignore", divide="ignore"):
        ratios = odds_ratio(np.array([one.probability for one in bins]), accuracy).tolist()
    are_narrow = is_float32([one.upper or 0.0 for one in bins])
    end = None
    for i, (one, ratio) in enumerate(zip(bins, ratios, strict=True)):
        for name, message in _broken_bin(one, end, ratio, n_samples, is_last=i == len(bins) - 1):
            yield f"bins[{i}].{name}", message
        if not are_narrow[i]:
            yield f"bins[{i}].upper", f"expected a float32, as uncertainties are, got {one.upper}"
        end = one.upper
    total = sum(one.count for one in bins)
    if total != n_samples:
        yield "bins", f"expected counts that sum to data.samples, {n_samples}, got {total}"
    means = [None, *(one.mean_uncertainty for one in bins)] if interpolated else []
    for i, (before, mean) in enumerate(pairwise(means)):
        if mean is None or (before is not None and mean <= before):
            yield (
                f"bins[{i}].mean_uncertainty",
                "expected a number above that of the bin before: the table is interpolated",
            )


def _broken_bin(
    one: Bin, end: float | None, ratio: float, n_samples: int, *, is_last: bool
) -> Iterator[tuple[str, str]]:
    lower, upper, (low, high) = one.lower, one.upper, one.interval
    if lower != end:
        yield "lower", f"expected {_text(end)}, where the bin before ends, got {_text(lower)}"
    if (upper is None) != is_last:
        expected = "null in the last bin" if is_last else "a number in any bin but the last"
        yield "upper", f"expected {expected}, got {_text(upper)}"
    if lower is not None and upper is not None and upper <= lower:
        yield "upper", f"edges must ascend: expected more than {lower}, got {upper}"
    if one.hits > one.count:
        yield "hits", f"expected at most the bin's samples, {one.count}, got {one.hits}"
    if not low <= one.probability <= high:
        yield (
            "probability",
            f"expected a value in its interval, {low} to {high}, got {one.probability}",
        )
    if not np.isfinite(ratio):
        yield "probability", "is too near to 0 or 1: its odds overflow"
    for name, computed in (("weight", one.count / n_samples), ("odds_ratio", ratio)):
        written = getattr(one, name)
        if written is not None and abs(written - computed) > TOLERANCE * max(written, computed):
            message = f"expected {computed}, which follows from the rest, got {written}"
            yield name, f"{message}; or leave it out"


def _text(value: float | None) -> str:
    return "null" if value is None else repr(value)
