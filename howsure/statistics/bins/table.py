"""The bin table: from an uncertainty to a probability with an interval."""

from dataclasses import dataclass, field

import numpy as np

from howsure.statistics.arrays import Counts, Rates
from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.bins.lookup import BinLookup, Lookup, LookupTable
from howsure.statistics.bins.prior import BetaPrior, odds_ratio
from howsure.statistics.effective import EffectiveBins

__all__ = ["BinLookup", "BinTable", "Lookup"]


@dataclass(frozen=True, eq=False, kw_only=True)
class BinTable(LookupTable):
    """A fitted lookup table with its counts.

    Attributes
    ----------
    counts, hits : ndarray of int64, shape (n_bins,)
    prior : BetaPrior
    requested_bins : int
        Bins requested, before ties merged edges and pooling merged bins.
    monotone : bool
    interval : IntervalOptions
    effective : EffectiveBins, optional
        Of a table of weighted or grouped samples, which its probabilities and intervals follow;
        ``counts`` and ``hits`` count samples in every case.
    """

    counts: Counts
    hits: Counts
    prior: BetaPrior
    requested_bins: int
    monotone: bool = False
    interval: IntervalOptions = field(default_factory=IntervalOptions)
    effective: EffectiveBins | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._convert(("counts", "hits"), np.int64)
        self._check_bins(("counts", "hits"))

    @property
    def n_samples(self) -> int:
        """Number of samples that the table was fitted on."""
        return int(self.counts.sum())

    @property
    def weights(self) -> Rates:
        """Share of the samples in each bin, or of their weight, shape (n_bins,)."""
        if self.effective is not None:
            return self.effective.shares
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
