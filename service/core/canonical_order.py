"""One order of the samples, whatever the one they came in."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from service.core.records import Records


def in_canonical_order(records: Records) -> Records:
    """Return the records by tie key, so that sums and folds see one order of the samples.

    Samples that share a key are told apart by what else is used of them; those that agree in all
    of it are exchangeable. Records that are in this order already are not copied.
    """
    order = _canonical_order(records)
    if np.array_equal(order, np.arange(records.n_samples)):
        return records
    return records.take(order)


@contextmanager
def moved_to_canonical_order(records: Records) -> Iterator[None]:
    """Move the samples within their arrays while the block runs, and back at its end.

    Memory is needed for a copy of one array, not of all: records are most of what a large fit
    holds.

    Raises
    ------
    ValueError
        If an array cannot be written to.
    """
    order = _canonical_order(records)
    _move(records, order)
    try:
        yield
    finally:
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        _move(records, back)


def _canonical_order(records: Records) -> NDArray[np.int64]:
    families = (records.uncertainty, records.mean_log_probability, records.mean_label_rank)
    others = [family[name] for family in families for name in sorted(family)]
    return np.lexsort((*others, records.label_rank, records.tie_key))


def _move(records: Records, order: NDArray[np.int64]) -> None:
    for array in records.to_arrays().values():
        array[:] = array[order]
