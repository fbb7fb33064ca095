"""The calibration error on a further set beside that of a calibrated table."""

import numpy as np

from service.core.arrays import Counts, Floats, Rates
from service.core.bins.table import BinTable
from service.core.consistency import ConsistencyBand
from service.core.scores import Judged
from service.core.scores.ece import ece

RESAMPLES = 2000
UPPER = 0.99


def further_band(table: BinTable, judged: Judged, *, rng: np.random.Generator) -> ConsistencyBand:
    """Return the calibration error of ``table`` on ``judged``, beside chance.

    In a world where the probabilities served are true, labels of the fit and of the judged set
    are drawn from them, bin by bin; the table is made again from the former, with its edges, and
    its error taken on the latter.

    Parameters
    ----------
    table : BinTable
    judged : Judged
        Samples judged by it, at least one.
    rng : numpy.random.Generator
    """
    counts, served = judged.occupied.counts, judged.occupied.probability
    held = np.flatnonzero(np.bincount(np.asarray(judged.bins), minlength=table.n_bins))
    fitted = rng.binomial(table.counts, table.probability, size=(RESAMPLES, table.n_bins))
    drawn = rng.binomial(counts, served, size=(RESAMPLES, held.size))
    errors = _errors(table, judged, _refitted(table, fitted)[:, held], drawn)
    median, upper = np.quantile(errors, [0.5, UPPER])
    return ConsistencyBand(
        score="ece",
        observed=ece(judged),
        median=float(median),
        upper=float(upper),
        resamples=RESAMPLES,
    )


def exchange_p_value(table: BinTable, judged: Judged, *, rng: np.random.Generator) -> float:
    """Return how often chance alone parts the hits as unevenly between fit and judged set.

    If the bins' probabilities are the same in both, then, given all hits of a bin, any of its
    samples are as likely to have had them: hits are dealt anew, hypergeometrically, the table is
    made from those of the fit, and its error taken on the rest. Unlike the band, this does not
    take the probabilities served for the truth, which a table fitted on one error in thousands
    of samples is far from. Exact for a step table that was not pooled.

    Returns
    -------
    float
        At least ``1 / 2001``.
    """
    bins = np.asarray(judged.bins, dtype=np.int64)
    counts = np.bincount(bins, minlength=table.n_bins)
    held = np.flatnonzero(counts)
    hits = table.hits + np.bincount(bins[judged.hits], minlength=table.n_bins)
    misses = table.counts + counts - hits
    dealt = rng.hypergeometric(hits, misses, counts, size=(RESAMPLES, table.n_bins))
    errors = _errors(table, judged, _refitted(table, hits - dealt)[:, held], dealt[:, held])
    observed = ece(judged) * (1.0 - 1e-9)  # a deal that is the observed one counts, to the last bit
    return float((1 + np.count_nonzero(errors >= observed)) / (1 + RESAMPLES))


def _errors(table: BinTable, judged: Judged, probability: Rates, hits: Counts) -> Rates:
    """Return the calibration error of each resample, its bins being those that hold samples."""
    occupied = judged.occupied
    held = np.flatnonzero(np.bincount(np.asarray(judged.bins), minlength=table.n_bins))
    # An interpolated table serves, on average over a bin, something else than the bin's own.
    off = occupied.probability - table.probability[held]
    gaps = np.abs(hits / occupied.counts - (probability + off))
    return np.asarray(gaps @ occupied.weights, dtype=np.float64)


def _refitted(table: BinTable, hits: Counts) -> Rates:
    """Return probabilities of tables fitted to other hits, shape (n_resamples, n_bins)."""
    total = hits.sum(axis=1, keepdims=True)
    is_certain = (total == 0) | (total == table.n_samples)
    accuracy: Floats = np.where(
        is_certain, (total + 0.5) / (table.n_samples + 1.0), total / table.n_samples
    )
    strength = table.prior.strength
    return np.asarray((hits + strength * accuracy) / (table.counts + strength), dtype=np.float64)
