"""Fit bin tables: quantile bins, pooled if requested, and the choice of their number."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from howsure.statistics.arrays import (
    Counts,
    Edges,
    Floats,
    Hits,
    Uncertainty,
    as_hits,
    as_uncertainty,
)
from howsure.statistics.bins.design import ALIKE, SampleDesign
from howsure.statistics.bins.edges import assign_bins, quantile_edges
from howsure.statistics.bins.intervals import IntervalOptions, binomial_interval
from howsure.statistics.bins.lookup import Lookup
from howsure.statistics.bins.prior import BetaPrior, fit_prior, posterior_mean
from howsure.statistics.bins.smooth import fit_curve
from howsure.statistics.bins.table import BinTable
from howsure.statistics.effective import EffectiveBins, effective_bins, effective_weights


@dataclass
class _Block:
    """Adjacent bins merged into one: the index of the first, and their sums."""

    start: int
    hits: float
    count: float

    def probability(self, prior: BetaPrior) -> float:
        return (self.hits + prior.alpha) / (self.count + prior.strength)


def pool_bins(hits: Counts | Floats, counts: Counts | Floats, prior: BetaPrior) -> Counts:
    """Return the first bin of each pooled block, ascending and starting at 0.

    Adjacent violators are pooled (Ayer et al. 1955) on the *regularised* probability, so that a
    less certain sample never gets a higher one. Regularising after pooling breaks that law: 10 hits
    of 10, then 999 of 1000, need no pooling, and would be served as .991 and then .999. The prior
    counts once per block, so a pooled block may lie above both its parts; hence each merger looks
    back until no violation is left.

    Parameters
    ----------
    hits, counts : ndarray of int64, or float64 if effective, shape (n_bins,)
        By ascending uncertainty.
    prior : BetaPrior

    Returns
    -------
    ndarray of int64, shape (n_blocks,)
    """
    blocks: list[_Block] = []
    for start, (n_hits, count) in enumerate(zip(hits.tolist(), counts.tolist(), strict=True)):
        block = _Block(start, n_hits, count)
        while blocks and blocks[-1].probability(prior) < block.probability(prior):
            last = blocks.pop()
            block = _Block(last.start, last.hits + block.hits, last.count + block.count)
        blocks.append(block)
    return np.array([block.start for block in blocks], dtype=np.int64)


def fit_bin_table(  # noqa: PLR0913 - each is an option of a table
    uncertainty: Uncertainty,
    hits: Hits,
    *,
    n_bins: int,
    prior_strength: float = 1.0,
    interval: IntervalOptions | None = None,
    lookup: Lookup = "step",
    monotone: bool = False,
    measure: str = "",
    design: SampleDesign = ALIKE,
    least: float | None = None,
) -> BinTable:
    """Fit quantile bins and their regularised probabilities: Oberman et al., Definition 1, 6.1.

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
        Finite, at least one.
    hits : ndarray of bool, shape (n_samples,)
        Whether the event holds.
    n_bins : int
        Number of bins requested; ties and pooling may leave fewer.
    prior_strength : float
        ``m``: the weight of the prior, in samples.
    interval : IntervalOptions, optional
        By default the exact interval at level 0.95.
    lookup : {"smooth", "interpolated", "step"}
        ``smooth`` also fits a curve; ``interpolated`` implies ``monotone``.
    monotone : bool
        Whether bins are pooled until probability falls with uncertainty.
    measure : str
        Name of the measure: the scale of the curve depends on it.
    design : SampleDesign
        Weights and groups: edges, probabilities and intervals follow what the samples of a bin are
        worth (`howsure.statistics.effective`).
    least : float, optional
        The least uncertainty of the set that these samples are a part of: its sign decides the
        scale of the curve, for all parts alike. By default they are the set.

    Raises
    ------
    ValueError
        If shapes differ, there is no sample, a value is not finite or an option is out of range.
    """
    interval = IntervalOptions() if interval is None else interval
    monotone = monotone or lookup == "interpolated"
    values = as_uncertainty(uncertainty)
    hits = as_hits(hits, n_samples=values.size)
    if values.size == 0:
        raise ValueError("uncertainty must hold at least one sample")
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, not {n_bins}")
    edges = quantile_edges(values, n_bins, design)
    filled = _fill(values, hits, edges, design)
    prior = fit_prior(hits, prior_strength, filled.effective)
    if monotone:
        starts = pool_bins(*filled.worth, prior)
        edges = np.append(edges[starts], edges[-1])
        filled = _fill(values, hits, edges, design)
    lower, upper = binomial_interval(*filled.worth, prior, interval)
    return BinTable(
        edges=edges,
        counts=filled.counts,
        hits=filled.hits,
        prior=prior,
        probability=posterior_mean(*filled.worth, prior),
        lower=lower,
        upper=upper,
        mean_uncertainty=filled.mean_uncertainty,
        requested_bins=n_bins,
        lookup=lookup,
        curve=None
        if lookup != "smooth"
        else fit_curve(
            values,
            hits,
            measure=measure,
            prior=prior,
            interval=interval,
            monotone=monotone,
            weights=effective_weights(hits, design),
            least=float(values.min()) if least is None else least,
        ),
        monotone=monotone,
        interval=interval,
        effective=filled.effective,
    )


@dataclass(frozen=True, eq=False)
class _FilledBins:
    """Samples and hits of each bin, its mean uncertainty, and what its samples are worth."""

    counts: Counts
    hits: Counts
    mean_uncertainty: Floats
    effective: EffectiveBins | None

    @property
    def worth(self) -> tuple[Counts | Floats, Counts | Floats]:
        """Hits and counts, effective ones under a design."""
        if self.effective is None:
            return self.hits, self.counts
        return self.effective.hits, self.effective.counts


def _fill(values: Uncertainty, hits: Hits, edges: Edges, design: SampleDesign) -> _FilledBins:
    bins, n_bins = assign_bins(values, edges), len(edges) - 1
    counts = np.bincount(bins, minlength=n_bins)
    sums = np.bincount(bins, weights=values.astype(np.float64), minlength=n_bins)
    return _FilledBins(
        counts=counts,
        hits=np.bincount(bins[hits], minlength=n_bins),
        mean_uncertainty=sums / counts,
        effective=effective_bins(bins, hits, n_bins, design),
    )


CANDIDATES = (1, 2, 5, 10, 15, 20, 30, 50, 75, 100)
LEAST_SAMPLES_PER_BIN = 25


@dataclass(frozen=True)
class BinCandidate:
    """A number of bins tried in cross-validation.

    Attributes
    ----------
    n_bins : int
        Number of bins requested.
    nll_mean, nll_std : float or None
        Negative log-likelihood over folds, nats.
    ece : float or None
        Mean expected calibration error over folds. Reported only; the choice ignores it.
    """

    n_bins: int
    nll_mean: float | None
    nll_std: float | None
    ece: float | None


def candidate_bins(n_samples: int) -> tuple[int, ...]:
    """Return the numbers of bins with at least 25 samples per bin; one bin is always allowed."""
    return tuple(
        n_bins
        for n_bins in CANDIDATES
        if n_bins == 1 or n_samples >= LEAST_SAMPLES_PER_BIN * n_bins
    )


def choose_bins(n_bins: Sequence[int], nll: Floats) -> int:
    """Return the fewest bins whose score is not clearly worse than the best.

    "Not clearly worse" means: the negative log-likelihood exceeds the smallest one by at most one
    standard error of the paired difference over folds. Expected calibration error would choose a
    single bin, whose error is 0, and on folds of 500 samples it is mostly noise.

    Parameters
    ----------
    n_bins : sequence of int
        Ascending.
    nll : ndarray of float64, shape (n_candidates, n_folds)
        A candidate with an ``inf`` is skipped unless every candidate has one.

    Returns
    -------
    int
        The smallest number of bins if there are fewer than two folds.
    """
    finite = np.flatnonzero(np.isfinite(nll).all(axis=1))
    if nll.shape[1] < 2 or finite.size == 0:  # noqa: PLR2004 -- no standard error
        return n_bins[0]
    best = finite[np.argmin(nll[finite].mean(axis=1))]
    excess = nll[finite] - nll[best]
    error = excess.std(axis=1, ddof=1) / np.sqrt(nll.shape[1])
    fewest = finite[np.argmax(excess.mean(axis=1) <= error)]
    return n_bins[int(fewest)]
