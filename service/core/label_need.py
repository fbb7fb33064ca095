"""How many more labels would bring an interval to a given width."""

import numpy as np

from service.core.bins.table import BinTable
from service.core.intervals import INTERVALS, BinomialSample

HALF_WIDTH = 0.05
GROWTH = np.geomspace(1.0, 1e4, 400)


def widest_bin(table: BinTable) -> int:
    """Return the bin of the widest interval, the first of equals."""
    return int(np.argmax(table.upper - table.lower))


def more_labels(table: BinTable, *, half_width: float = HALF_WIDTH) -> int | None:
    """Return about how many more samples bring the widest interval within ``half_width``.

    Supposing that the bin's probability is what it seems, and that it gets the share of new
    samples that it has of the old ones. The regularised probability is taken: one hit of one
    sample would promise that nothing but hits will follow.

    Returns
    -------
    int or None
        0 where the interval is narrow enough; None where 10,000 times the samples are not enough.
    """
    widest = widest_bin(table)
    if table.upper[widest] - table.lower[widest] <= 2.0 * half_width:
        return 0
    delta = 1.0 - table.interval.level
    if table.interval.simultaneous:
        delta /= table.n_bins
    counts = np.rint(table.counts[widest] * GROWTH).astype(np.int64)
    hits = np.rint(table.probability[widest] * counts).astype(np.int64)
    sample = BinomialSample(hits, counts, table.prior)
    lower, upper = INTERVALS[table.interval.method](sample, 1.0 - delta)
    enough = upper - lower <= 2.0 * half_width
    if not enough.any():
        return None
    growth = counts[np.argmax(enough)] / table.counts[widest]
    return int(np.ceil((growth - 1.0) * table.n_samples))
