"""The calibration error on a further set beside that of a calibrated table."""

import numpy as np

from service.core.arrays import Floats, Rates
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
    bins = np.asarray(judged.bins, dtype=np.int64)
    counts = np.bincount(bins, minlength=table.n_bins)
    held = np.flatnonzero(counts)
    served = judged.occupied.probability
    rates = rng.binomial(counts[held], served, size=(RESAMPLES, held.size)) / counts[held]
    # An interpolated table serves, on average over a bin, something else than the bin's own.
    off = served - table.probability[held]
    errors = np.abs(rates - (_refitted(table, rng)[:, held] + off)) @ (counts[held] / bins.size)
    median, upper = np.quantile(errors, [0.5, UPPER])
    return ConsistencyBand(
        score="ece",
        observed=ece(judged),
        median=float(median),
        upper=float(upper),
        resamples=RESAMPLES,
    )


def _refitted(table: BinTable, rng: np.random.Generator) -> Rates:
    """Return probabilities of tables fitted to drawn labels, shape (RESAMPLES, n_bins)."""
    hits = rng.binomial(table.counts, table.probability, size=(RESAMPLES, table.n_bins))
    total = hits.sum(axis=1, keepdims=True)
    is_certain = (total == 0) | (total == table.n_samples)
    accuracy: Floats = np.where(
        is_certain, (total + 0.5) / (table.n_samples + 1.0), total / table.n_samples
    )
    strength = table.prior.strength
    return np.asarray((hits + strength * accuracy) / (table.counts + strength), dtype=np.float64)
