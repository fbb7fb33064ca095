"""Permutation tests of whether the probabilities of a table hold on another set."""

import numpy as np

from howsure.statistics.arrays import Counts, Uncertainty
from howsure.statistics.bins.prior import prior_mean, regularised_rate
from howsure.statistics.bins.table import BinTable
from howsure.statistics.scores import Predictions
from howsure.statistics.scores.binned_error import ece

RESAMPLES = 2000


def ece_permutation_test(
    table: BinTable, judged: Predictions, *, rng: np.random.Generator, resamples: int = RESAMPLES
) -> float:
    """Return the p-value of a calibration error: the chance of one at least as large.

    Under the null hypothesis a bin has the same probability in the fitted and in the evaluated set.
    Given all hits of a bin, every assignment of hits to its samples is then equally likely. Hits
    are redrawn from the hypergeometric distribution, the table is refitted, and its error is
    computed on the evaluated set. Unlike the consistency band, this does not assume that the served
    probabilities are true, which is far from correct for a table fitted on one error in thousands
    of samples. The test is exact for a step table without pooling.

    Returns
    -------
    float
        At least ``1 / (1 + resamples)``.
    """
    counts, hits, dealt = _deal(table, judged, rng, resamples)
    held = np.flatnonzero(counts)
    # What interpolation adds to a bin's own probability. A curve is compared with the bins instead:
    # where it is far from them, it is wrong.
    off = judged.occupied.probability - table.probability[held]
    if table.lookup == "smooth":
        off = np.zeros_like(off)
    accuracy = prior_mean((hits - dealt).sum(axis=1, keepdims=True), table.n_samples)
    refitted = regularised_rate(hits - dealt, table.counts, accuracy, table.prior.strength)
    probability = refitted[:, held] + off
    errors = np.abs(dealt[:, held] / counts[held] - probability) @ judged.occupied.weights
    observed = ece(judged) * (1.0 - 1e-9)  # the observed assignment counts, in spite of rounding
    return float((1 + np.count_nonzero(errors >= observed)) / (1 + resamples))


def gap_permutation_test(
    table: BinTable,
    fitted: Uncertainty,
    judged: Predictions,
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> float:
    """Return the p-value of the share of hits: the chance of one as far from what is expected.

    Under the same null hypothesis as `ece_permutation_test`, which adds up deviations of bins
    regardless of their direction and so needs far more samples to see that answers are right less
    often everywhere. Where a bin has other uncertainties in the evaluated set than in the fitted
    one, its expected hits follow the served probabilities.

    Parameters
    ----------
    table : BinTable
    fitted : ndarray of float32, shape (n_fitted,)
        Uncertainties of the samples that the table was fitted on.
    judged : Predictions
        By the table, of other samples.

    Returns
    -------
    float
        At least ``1 / (1 + resamples)``.
    """
    counts, hits, dealt = _deal(table, judged, rng, resamples)
    known = table.look_up(fitted)
    bins = np.asarray(judged.bins, dtype=np.int64)
    stated = np.bincount(bins, judged.probability, table.n_bins)
    stated_of_both = stated + np.bincount(known.bin, known.probability, table.n_bins)
    share = counts / np.maximum(table.counts + counts, 1)
    moved = stated - share * stated_of_both
    expected = share * hits
    gaps = np.abs((dealt - expected).sum(axis=1))
    observed = abs(float(judged.hits.sum() - (expected + moved).sum())) * (1.0 - 1e-9)
    return float((1 + np.count_nonzero(gaps >= observed)) / (1 + resamples))


def _deal(
    table: BinTable, judged: Predictions, rng: np.random.Generator, resamples: int
) -> tuple[Counts, Counts, Counts]:
    """Return by bin the evaluated samples, the hits of both sets, and those of the set by deal."""
    bins = np.asarray(judged.bins, dtype=np.int64)
    counts = np.bincount(bins, minlength=table.n_bins)
    hits = table.hits + np.bincount(bins[judged.hits], minlength=table.n_bins)
    misses = table.counts + counts - hits
    return counts, hits, rng.hypergeometric(hits, misses, counts, size=(resamples, table.n_bins))
