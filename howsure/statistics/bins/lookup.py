"""Lookups: from an uncertainty to a bin, a probability and its interval."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from howsure.statistics.arrays import BinIndex, Edges, Rates, Uncertainty
from howsure.statistics.bins.curve import Curve
from howsure.statistics.bins.edges import assign_bins

Lookup: TypeAlias = Literal["smooth", "interpolated", "step"]

RATES = ("probability", "lower", "upper", "mean_uncertainty")


@dataclass(frozen=True, eq=False)
class BinLookup:
    """Answers of a bin table, one per sample.

    Attributes
    ----------
    bin : ndarray of int64, shape (n_samples,)
    probability, lower, upper : ndarray of float64, shape (n_samples,)
        ``lower <= probability <= upper``.
    """

    bin: BinIndex
    probability: Rates
    lower: Rates
    upper: Rates


@dataclass(frozen=True, eq=False, kw_only=True)
class LookupTable:
    """The part of a bin table that lookups need, by ascending uncertainty.

    Sequences are converted to arrays, and intervals widened to hold their probability.

    Attributes
    ----------
    edges : ndarray of float32, shape (n_bins + 1,)
        Strictly ascending, from ``-inf`` to ``inf``; bin ``i`` holds ``(edges[i], edges[i + 1]]``.
    probability, lower, upper : ndarray of float64, shape (n_bins,)
        The regularised probability of each bin and its interval.
    mean_uncertainty : ndarray of float64, shape (n_bins,)
        Where the interpolated lookup takes the probability of the bin.
    lookup : {"smooth", "interpolated", "step"}
    curve : Curve, optional
        The curve, if the lookup is smooth.

    Raises
    ------
    ValueError
        If shapes disagree, edges do not ascend between infinities, the lookup is unknown, an
        interpolated table's means do not ascend, or a smooth table has no curve.
    """

    edges: Edges
    probability: Rates
    lower: Rates
    upper: Rates
    mean_uncertainty: Rates
    lookup: Lookup = "step"
    curve: Curve | None = None

    def __post_init__(self) -> None:
        self._convert(("edges",), np.float32)
        self._convert(RATES, np.float64)
        self._check_bins(RATES)
        if self.edges[0] != -np.inf or self.edges[-1] != np.inf or not _ascends(self.edges):
            raise ValueError("edges must ascend strictly from -inf to inf")
        if self.lookup not in get_args(Lookup):
            raise ValueError(f"lookup must be one of {get_args(Lookup)}, not {self.lookup!r}")
        if self.lookup == "interpolated" and not _ascends(self.mean_uncertainty):
            raise ValueError("mean_uncertainty must ascend in an interpolated table")
        if (self.lookup == "smooth") != (self.curve is not None):
            raise ValueError("a smooth table, and no other, must have a curve")
        object.__setattr__(self, "lower", np.minimum(self.lower, self.probability))
        object.__setattr__(self, "upper", np.maximum(self.upper, self.probability))

    def _convert(self, names: tuple[str, ...], dtype: type[np.generic]) -> None:
        for name in names:
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=dtype))

    def _check_bins(self, names: tuple[str, ...]) -> None:
        for name in names:
            if getattr(self, name).shape != (self.n_bins,):
                raise ValueError(f"{name} must have one value per bin, {self.n_bins}")

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    def look_up(self, uncertainty: Uncertainty) -> BinLookup:
        """Return bin, probability and interval of each sample.

        ``smooth`` reads the curve. ``step`` gives the probability of the bin. ``interpolated`` is
        linear between the bins' mean uncertainties and constant beyond the outer two; its interval
        is that of the bin, widened where needed to hold the probability.

        Raises
        ------
        ValueError
            If a value is not finite.
        """
        bins = assign_bins(uncertainty, self.edges)
        if self.curve is not None:
            return BinLookup(bins, *self.curve.at(uncertainty))
        lower, upper = self.lower[bins], self.upper[bins]
        if self.lookup == "step":
            return BinLookup(bins, self.probability[bins], lower, upper)
        # Via float32, because bins are assigned in float32.
        values = np.asarray(uncertainty, np.float32).astype(np.float64)
        probability = np.interp(values, self.mean_uncertainty, self.probability)
        return BinLookup(
            bins, probability, np.minimum(lower, probability), np.maximum(upper, probability)
        )


def _ascends(values: Edges | Rates) -> bool:
    return bool((values[1:] > values[:-1]).all())
