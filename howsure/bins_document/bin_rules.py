"""Rules for the bins of a table: its numbers must agree with one another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from howsure.bins_document.document import Bin
from howsure.statistics.bins.prior import odds_ratio

TOLERANCE = 1e-9

Column: TypeAlias = NDArray[np.float64]
Message: TypeAlias = Callable[[int], str]


class BrokenRule(NamedTuple):
    """The path of the value that breaks a rule, and a message with the expected value."""

    path: str
    message: str


@dataclass(frozen=True, eq=False, kw_only=True)
class BinColumns:
    """Bins as columns of shape (n_bins,); NaN marks a value missing from the document.

    Attributes
    ----------
    counts, hits : ndarray of int64
    lower, upper, weight, probability, interval_lower, interval_upper, mean_uncertainty, odds_ratio
        ndarray of float64.
    """

    lower: Column
    upper: Column
    counts: NDArray[np.int64]
    hits: NDArray[np.int64]
    weight: Column
    probability: Column
    interval_lower: Column
    interval_upper: Column
    mean_uncertainty: Column
    odds_ratio: Column

    @classmethod
    def of(cls, bins: Sequence[Bin]) -> Self:
        """Return bins as columns."""

        def column(name: str) -> Column:
            return np.array([getattr(one, name) for one in bins], np.float64)

        names = ("lower", "upper", "weight", "probability", "mean_uncertainty", "odds_ratio")
        return cls(
            counts=np.array([one.count for one in bins], np.int64),
            hits=np.array([one.hits for one in bins], np.int64),
            interval_lower=np.array([one.interval[0] for one in bins]),
            interval_upper=np.array([one.interval[1] for one in bins]),
            **{name: column(name) for name in names},
        )


def is_float32(values: Column) -> NDArray[np.bool_]:
    """Return which numbers are exact in float32."""
    with np.errstate(over="ignore"):
        return np.asarray(values.astype(np.float32) == values)


def broken_rule(
    bins: BinColumns, *, accuracy: float, n_samples: int, interpolated: bool
) -> BrokenRule | None:
    """Return the first broken rule, by bin and then by rule; None if all hold.

    Edges ascend without gaps and are exact in float32. A bin has at most as many hits as samples,
    and its probability lies in its interval. Weight and odds ratio, if present, agree with the
    other values. Counts sum to ``n_samples``. Means of an interpolated table ascend.
    """
    rules = [*_edge_rules(bins), *_count_rules(bins), *_derived_rules(bins, accuracy, n_samples)]
    broken = np.stack([mask for _, mask, _ in rules])
    if broken.any():
        place = int(broken.any(axis=0).argmax())
        name, _, message = rules[int(broken[:, place].argmax())]
        return BrokenRule(f"bins[{place}].{name}", message(place))
    # Python integers: the sum may exceed int64.
    total = sum(bins.counts.tolist())
    if total != n_samples:
        return BrokenRule(
            "bins", f"expected counts that sum to data.samples, {n_samples}, got {total}"
        )
    return _broken_mean(bins.mean_uncertainty) if interpolated else None


def _edge_rules(bins: BinColumns) -> list[tuple[str, NDArray[np.bool_], Message]]:
    lower, upper = bins.lower, bins.upper
    before = np.concatenate([[np.nan], upper[:-1]])
    is_last = np.arange(len(upper)) == len(upper) - 1
    has_upper = ~np.isnan(upper)

    def at_lower(i: int) -> str:
        known = (
            "null, the first bin's" if i == 0 else f"{_text(before, i)}, where the bin before ends"
        )
        return f"expected {known}, got {_text(lower, i)}"

    def at_upper(i: int) -> str:
        known = "null in the last bin" if is_last[i] else "a number in any bin but the last"
        return f"expected {known}, got {_text(upper, i)}"

    return [
        ("lower", ~np.isclose(lower, before, rtol=0, atol=0, equal_nan=True), at_lower),
        ("upper", has_upper == is_last, at_upper),
        (
            "upper",
            has_upper & ~is_float32(upper),
            lambda i: f"expected a float32, as uncertainties are, got {_text(upper, i)}",
        ),
        (
            "upper",
            upper <= lower,
            lambda i: (
                f"edges must ascend: expected more than {_text(lower, i)}, got {_text(upper, i)}"
            ),
        ),
    ]


def _count_rules(bins: BinColumns) -> list[tuple[str, NDArray[np.bool_], Message]]:
    low, high, probability = bins.interval_lower, bins.interval_upper, bins.probability
    return [
        (
            "hits",
            bins.hits > bins.counts,
            lambda i: f"expected at most the bin's samples, {bins.counts[i]}, got {bins.hits[i]}",
        ),
        (
            "probability",
            ~((low <= probability) & (probability <= high)),
            lambda i: (
                f"expected a value in its interval, {_text(low, i)} to {_text(high, i)}, "
                f"got {_text(probability, i)}"
            ),
        ),
    ]


def _derived_rules(
    bins: BinColumns, accuracy: float, n_samples: int
) -> list[tuple[str, NDArray[np.bool_], Message]]:
    """Return the rules for values that follow from others."""
    with np.errstate(over="ignore", divide="ignore"):
        odds = odds_ratio(bins.probability, accuracy)
    return [
        ("probability", ~np.isfinite(odds), lambda _: "is too near to 0 or 1: its odds overflow"),
        _follows("weight", bins.weight, bins.counts / n_samples),
        _follows("odds_ratio", bins.odds_ratio, odds),
    ]


def _follows(
    name: str, written: Column, computed: Column
) -> tuple[str, NDArray[np.bool_], Message]:
    largest = np.maximum(np.abs(written), np.abs(computed))
    with np.errstate(invalid="ignore"):
        apart = np.abs(written - computed) > TOLERANCE * largest
    return (
        name,
        apart,
        lambda i: (
            f"expected {_text(computed, i)}, which follows from the rest, got "
            f"{_text(written, i)}; or leave it out"
        ),
    )


def _broken_mean(means: Column) -> BrokenRule | None:
    """Return the first mean that does not ascend, as interpolation requires."""
    before = np.concatenate([[-np.inf], means[:-1]])
    broken = ~(means > before)
    if not broken.any():
        return None
    return BrokenRule(
        f"bins[{int(broken.argmax())}].mean_uncertainty",
        "expected a number above that of the bin before: the table is interpolated",
    )


def _text(values: Column, place: int) -> str:
    value = float(values[place])
    return "null" if np.isnan(value) else repr(value)
