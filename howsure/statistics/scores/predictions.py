"""Predictions: probabilities for samples whose hits are known."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from howsure.statistics.arrays import BinIndex, Counts, Floats, Hits, Rates, Uncertainty, mean_over
from howsure.statistics.bins.design import ALIKE, SampleDesign
from howsure.statistics.bins.table import BinTable
from howsure.statistics.ranking import RankedSamples, rank_samples


@dataclass(frozen=True, eq=False)
class OccupiedBins:
    """The bins with at least one evaluated sample, in order.

    Attributes
    ----------
    counts, hits : ndarray of float64, shape (n_occupied,)
        Weights of samples and hits.
    probability : ndarray of float64, shape (n_occupied,)
        Mean probability served to the samples of the bin: the bin's own, for a step table.
    """

    counts: Counts | Floats
    hits: Counts | Floats
    probability: Rates

    @property
    def weights(self) -> Rates:
        """Share of the evaluated samples in each bin."""
        return np.asarray(self.counts / self.counts.sum(), dtype=np.float64)

    @property
    def hit_rates(self) -> Rates:
        """Share of hits in each bin."""
        return np.asarray(self.hits / self.counts, dtype=np.float64)


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictions:
    """Samples with probabilities and known hits.

    Attributes
    ----------
    uncertainty : ndarray of float32 or float64, shape (n_samples,)
        Ranks the samples; larger = more uncertain.
    hits : ndarray of bool, shape (n_samples,)
    probability : ndarray of float64, shape (n_samples,)
        Served probability of a hit, in [0, 1].
    bins : ndarray of int64, shape (n_samples,), optional
        Bin of each sample; None if the probabilities do not come from bins.
    table : BinTable, optional
        The fitted table that the bins belong to.
    log_floor : float
        For logarithms the probability is clipped to ``[log_floor, 1 - log_floor]``. 0 for bin
        tables, whose probabilities are never 0 or 1.
    design : SampleDesign
        Weights and groups of the samples; means are weighted.
    """

    uncertainty: Uncertainty | Floats
    hits: Hits
    probability: Rates
    bins: BinIndex | None = None
    table: BinTable | None = None
    log_floor: float = 0.0
    design: SampleDesign = ALIKE

    def mean(self, values: Floats | Hits) -> float:
        """Return the weighted mean of a value over the samples."""
        return float(mean_over(values, self.weights))

    @cached_property
    def weights(self) -> Floats:
        """Sampling weights, shape (n_samples,); sums of equal ones are counts."""
        return self.design.weights(self.n_samples)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.hits)

    @cached_property
    def occupied(self) -> OccupiedBins:
        """Counts, hits and mean probability of the bins that hold samples.

        Raises
        ------
        ValueError
            If there are no bins.
        """
        if self.bins is None:
            raise ValueError("bins must be given for a score that needs them")
        counts = np.bincount(self.bins, self.weights)
        kept = counts > 0.0
        hits = np.bincount(self.bins, self.weights * self.hits)
        # A mean of differences from one of the bin's values: the mean of equal values is then
        # exact, and so are decompositions for probabilities next to 1.
        one = np.zeros(len(counts))
        one[self.bins] = self.probability
        apart = self.probability - one[self.bins]
        sums = np.bincount(self.bins, self.weights * apart)
        probability = one[kept] + sums[kept] / counts[kept]
        return OccupiedBins(counts[kept], hits[kept], probability)

    @cached_property
    def by_uncertainty(self) -> RankedSamples:
        """Samples by ascending uncertainty."""
        return rank_samples(self.uncertainty, self.hits, self.design)

    @cached_property
    def by_confidence(self) -> RankedSamples:
        """Samples by descending probability: the values are ``-probability``."""
        return rank_samples(-self.probability, self.hits)
