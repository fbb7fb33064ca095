"""The bin table: what turns an uncertainty into a probability with an interval."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import numpy as np

from service.core.arrays import BinIndex, Counts, Edges, Rates, Uncertainty
from service.core.bins.assign import assign_bins
from service.core.bins.odds import odds_ratio
from service.core.bins.prior import BetaPrior
from service.core.intervals import IntervalOptions

Lookup: TypeAlias = Literal["step", "interpolated"]


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
class BinTable:
    """Bins by ascending uncertainty; sequences are converted to arrays.

    Attributes
    ----------
    edges : ndarray of float32, shape (n_bins + 1,)
        Strictly ascending, from ``-inf`` to ``inf``; bin ``i`` holds ``(edges[i], edges[i + 1]]``.
    counts, hits : ndarray of int64, shape (n_bins,)
    prior : BetaPrior
    probability, lower, upper : ndarray of float64, shape (n_bins,)
        The regularised probability of each bin and its interval, which holds it.
    mean_uncertainty : ndarray of float64, shape (n_bins,)
        Where the interpolated lookup takes the bin's probability.
    requested_bins : int
        Bins asked for, before ties merged edges and pooling merged bins.
    lookup : {"step", "interpolated"}
    monotone : bool
    interval : IntervalOptions

    Raises
    ------
    ValueError
        If shapes disagree, edges do not ascend between infinities, the lookup is unknown, or an
        interpolated table's means do not ascend.
    """

    edges: Edges
    counts: Counts
    hits: Counts
    prior: BetaPrior
    probability: Rates
    lower: Rates
    upper: Rates
    mean_uncertainty: Rates
    requested_bins: int
    lookup: Lookup = "step"
    monotone: bool = False
    interval: IntervalOptions = field(default_factory=IntervalOptions)

    def __post_init__(self) -> None:
        self._convert("edges", np.float32)
        for name in ("counts", "hits"):
            self._convert(name, np.int64)
        for name in ("probability", "lower", "upper", "mean_uncertainty"):
            self._convert(name, np.float64)
        for name in ("counts", "hits", "probability", "lower", "upper", "mean_uncertainty"):
            if getattr(self, name).shape != (len(self.edges) - 1,):
                raise ValueError(f"{name} must have one value per bin, {len(self.edges) - 1}")
        if self.edges[0] != -np.inf or self.edges[-1] != np.inf or not _ascends(self.edges):
            raise ValueError("edges must ascend strictly from -inf to inf")
        if self.lookup not in get_args(Lookup):
            raise ValueError(f"lookup must be one of {get_args(Lookup)}, not {self.lookup!r}")
        if self.lookup == "interpolated" and not _ascends(self.mean_uncertainty):
            raise ValueError("mean_uncertainty must ascend in an interpolated table")

    def _convert(self, name: str, dtype: type[np.generic]) -> None:
        object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=dtype))

    @property
    def n_bins(self) -> int:
        """How many bins there are."""
        return len(self.counts)

    @property
    def n_samples(self) -> int:
        """How many samples the table was fitted on."""
        return int(self.counts.sum())

    @property
    def weights(self) -> Rates:
        """Share of the samples in each bin, shape (n_bins,)."""
        return np.asarray(self.counts / self.n_samples, dtype=np.float64)

    @property
    def hit_rates(self) -> Rates:
        """Plain ``hits / counts``, shape (n_bins,); NaN for an empty bin."""
        rates = np.full(self.n_bins, np.nan)
        np.divide(self.hits, self.counts, out=rates, where=self.counts > 0)
        return rates

    @property
    def odds_ratios(self) -> Rates:
        """Odds ratio of each bin's probability to the event's accuracy, shape (n_bins,)."""
        return odds_ratio(self.probability, self.prior.accuracy)

    def look_up(self, uncertainty: Uncertainty) -> BinLookup:
        """Return bin, probability and interval of each sample.

        ``step`` gives the probability of the bin. ``interpolated`` is linear between the bins'
        mean uncertainties and constant beyond the outer two; its interval is that of the bin,
        widened where needed to hold the probability.

        Raises
        ------
        ValueError
            If a value is not finite.
        """
        bins = assign_bins(uncertainty, self.edges)
        if self.lookup == "step":
            lower, upper = self._step_interval
            return BinLookup(bins, self.probability[bins], lower[bins], upper[bins])
        # By way of float32, to which the bins were assigned.
        values = np.asarray(uncertainty, np.float32).astype(np.float64)
        probability = np.interp(values, self.mean_uncertainty, self.probability)
        return BinLookup(
            bin=bins,
            probability=probability,
            lower=np.minimum(self.lower[bins], probability),
            upper=np.maximum(self.upper[bins], probability),
        )

    @cached_property
    def _step_interval(self) -> tuple[Rates, Rates]:
        """Ends of each bin's interval, made to hold its probability."""
        return np.minimum(self.lower, self.probability), np.maximum(self.upper, self.probability)


def _ascends(values: Edges | Rates) -> bool:
    return bool((values[1:] > values[:-1]).all())
