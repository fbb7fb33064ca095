"""What one table of a bins document must keep to, so that it answers as it says."""

import math

import numpy as np

from service.core.bins.odds import odds_ratio
from service.errors import InvalidInput
from service.operations.bins_document import Bin, Table

TOLERANCE = 1e-9


def check_table(table: Table, place: str, *, n_samples: int) -> None:
    """Check edges, counts and probabilities of a table found at ``place``.

    Raises
    ------
    InvalidInput
        At the first rule that is broken.
    """
    if not table.requested_bins >= table.quantile_bins >= len(table.bins):
        raise InvalidInput.at(
            f"{place}.quantile_bins",
            f"expected from {len(table.bins)}, the bins there are, to requested_bins",
        )
    for i, found in enumerate(table.bins):
        _check_edges(table.bins, i, f"{place}.bins[{i}]")
        _check_counts(found, f"{place}.bins[{i}]")
        _check_derived(found, table.prior.accuracy, n_samples, f"{place}.bins[{i}]")
    total = sum(found.count for found in table.bins)
    if total != n_samples:
        raise InvalidInput.at(
            f"{place}.bins", f"expected counts that sum to data.samples, {n_samples}, got {total}"
        )
    if table.lookup == "interpolated":
        _check_means(table.bins, place)


def is_float32(value: float) -> bool:
    """Tell whether a finite number is one that float32 holds exactly."""
    with np.errstate(over="ignore"):
        return float(np.float32(value)) == value


def _check_edges(bins: list[Bin], i: int, place: str) -> None:
    found, last = bins[i], i == len(bins) - 1
    before = None if i == 0 else bins[i - 1].upper
    if found.lower != before:
        expected = "null, the first bin's" if i == 0 else f"{before!r}, where the bin before ends"
        raise InvalidInput.at(f"{place}.lower", f"expected {expected}, got {found.lower!r}")
    if (found.upper is None) != last:
        expected = "null in the last bin" if last else "a number in any bin but the last"
        raise InvalidInput.at(f"{place}.upper", f"expected {expected}, got {found.upper!r}")
    if found.upper is None:
        return
    if not is_float32(found.upper):
        raise InvalidInput.at(
            f"{place}.upper", f"expected a float32, as uncertainties are, got {found.upper!r}"
        )
    if found.lower is not None and found.upper <= found.lower:
        raise InvalidInput.at(
            f"{place}.upper",
            f"edges must ascend: expected more than {found.lower!r}, got {found.upper!r}",
        )


def _check_counts(found: Bin, place: str) -> None:
    if found.hits > found.count:
        raise InvalidInput.at(
            f"{place}.hits",
            f"expected at most the bin's samples, {found.count}, got {found.hits}",
        )
    lower, upper = found.interval
    if not lower <= found.probability <= upper:
        raise InvalidInput.at(
            f"{place}.probability",
            f"expected a value in its interval, {lower!r} to {upper!r}, got {found.probability!r}",
        )


def _check_derived(found: Bin, accuracy: float, n_samples: int, place: str) -> None:
    """Refuse numbers that follow from others and disagree with them."""
    with np.errstate(over="ignore", divide="ignore"):
        odds = float(odds_ratio(np.array([found.probability]), accuracy)[0])
    if not math.isfinite(odds):
        raise InvalidInput.at(f"{place}.probability", "is too near to 0 or 1: its odds overflow")
    for name, given, computed in (
        ("weight", found.weight, found.count / n_samples),
        ("odds_ratio", found.odds_ratio, odds),
    ):
        if given is not None and not math.isclose(given, computed, rel_tol=TOLERANCE):
            raise InvalidInput.at(
                f"{place}.{name}",
                f"expected {computed!r}, which follows from the rest, got {given!r}; or leave it "
                "out",
            )


def _check_means(bins: list[Bin], place: str) -> None:
    """Refuse means that an interpolation could not run through."""
    before = -math.inf
    for i, found in enumerate(bins):
        mean = found.mean_uncertainty
        if mean is None or mean <= before:
            raise InvalidInput.at(
                f"{place}.bins[{i}].mean_uncertainty",
                "expected a number above that of the bin before: the table is interpolated",
            )
        before = mean
