"""Fit a bin table."""

import numpy as np

from service.core.arrays import Hits, Uncertainty, as_hits, as_uncertainty
from service.core.bins.assign import assign_bins
from service.core.bins.edges import quantile_edges
from service.core.bins.pool import pool_bins
from service.core.bins.prior import fit_prior, posterior_mean
from service.core.bins.table import BinTable, Lookup
from service.core.intervals import BinomialSample, IntervalOptions, binomial_interval


def fit_bin_table(
    uncertainty: Uncertainty,
    hits: Hits,
    *,
    n_bins: int,
    prior_strength: float = 1.0,
    interval: IntervalOptions | None = None,
    lookup: Lookup = "step",
    monotone: bool = False,
) -> BinTable:
    """Fit quantile bins and their regularised probabilities: Oberman et al., Definition 1, 6.1.

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
        Finite, at least one.
    hits : ndarray of bool, shape (n_samples,)
        Whether the event holds.
    n_bins : int
        Bins asked for; ties and pooling may leave fewer.
    prior_strength : float
        ``m``, the samples the prior counts for.
    interval : IntervalOptions, optional
        The exact interval at level .95 unless said otherwise.
    lookup : {"step", "interpolated"}
        ``interpolated`` implies ``monotone``.
    monotone : bool
        Whether bins are pooled until probability falls with uncertainty.

    Raises
    ------
    ValueError
        If shapes differ, there is no sample, a value is not finite or an option is out of range.
    """
    interval = IntervalOptions() if interval is None else interval
    monotone = monotone or lookup == "interpolated"
    values = as_uncertainty(uncertainty)
    hits = as_hits(hits, n_samples=values.size)
    edges = quantile_edges(values, n_bins)
    prior = fit_prior(hits, prior_strength)
    bins = assign_bins(values, edges)
    counts = np.bincount(bins, minlength=len(edges) - 1)
    bin_hits = np.bincount(bins[hits], minlength=len(edges) - 1)
    sums = np.bincount(bins, weights=values.astype(np.float64), minlength=len(edges) - 1)
    if monotone:
        starts = pool_bins(bin_hits, counts, prior)
        edges = np.append(edges[starts], edges[-1])
        counts, bin_hits = np.add.reduceat(counts, starts), np.add.reduceat(bin_hits, starts)
        sums = np.add.reduceat(sums, starts)
    probability = posterior_mean(bin_hits, counts, prior)
    lower, upper = binomial_interval(BinomialSample(bin_hits, counts, prior), interval)
    return BinTable(
        edges=edges,
        counts=counts,
        hits=bin_hits,
        prior=prior,
        probability=probability,
        lower=np.minimum(lower, probability),
        upper=np.maximum(upper, probability),
        mean_uncertainty=sums / counts,
        requested_bins=n_bins,
        lookup=lookup,
        monotone=monotone,
        interval=interval,
    )
