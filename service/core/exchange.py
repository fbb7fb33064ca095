"""Whether chance explains the calibration error on a further set."""

import numpy as np

from service.core.arrays import Counts, Floats, Rates
from service.core.bins.table import BinTable
from service.core.scores import Judged
from service.core.scores.ece import ece

RESAMPLES = 2000


def exchange_p_value(
    table: BinTable, judged: Judged, *, rng: np.random.Generator, resamples: int = RESAMPLES
) -> float:
    """Return how often chance alone parts the hits as unevenly between fit and judged set.

    If the bins' probabilities are the same in both, then, given all hits of a bin, any of its
    samples are as likely to have had them: hits are dealt anew, hypergeometrically, the table is
    made from those of the fit, and its error taken on the rest. Unlike the consistency band, this
    does not take the probabilities served for the truth, which those of a table fitted on one
    error in thousands of samples are far from. Exact for a step table that was not pooled.

    Returns
    -------
    float
        At least ``1 / (1 + resamples)``.
    """
    bins = np.asarray(judged.bins, dtype=np.int64)
    counts = np.bincount(bins, minlength=table.n_bins)
    hits = table.hits + np.bincount(bins[judged.hits], minlength=table.n_bins)
    misses = table.counts + counts - hits
    dealt = rng.hypergeometric(hits, misses, counts, size=(resamples, table.n_bins))
    held = np.flatnonzero(counts)
    # An interpolated table serves, on average over a bin, something else than the bin's own.
    off = judged.occupied.probability - table.probability[held]
    probability = _refitted(table, hits - dealt)[:, held] + off
    errors = np.abs(dealt[:, held] / counts[held] - probability) @ judged.occupied.weights
    observed = ece(judged) * (1.0 - 1e-9)  # the deal that was observed counts, to the last bit
    return float((1 + np.count_nonzero(errors >= observed)) / (1 + resamples))


def _refitted(table: BinTable, hits: Counts) -> Rates:
    """Return probabilities of tables fitted to other hits, shape (n_resamples, n_bins)."""
    total = hits.sum(axis=1, keepdims=True)
    is_certain = (total == 0) | (total == table.n_samples)
    accuracy: Floats = np.where(
        is_certain, (total + 0.5) / (table.n_samples + 1.0), total / table.n_samples
    )
    strength = table.prior.strength
    return np.asarray((hits + strength * accuracy) / (table.counts + strength), dtype=np.float64)
