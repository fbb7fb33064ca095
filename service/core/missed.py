"""Samples that an event missed, to be listed in some order."""

import numpy as np
from numpy.typing import NDArray

from service.core.records import Records


def missed_rows(records: Records, k: int, column: str, *, n: int) -> NDArray[np.int64]:
    """Return the rows with ``X = 0``, of which at most ``n`` are to be listed by ``column``.

    Raises
    ------
    ValueError
        If the records lack the column, or ``n`` is negative.
    """
    if column not in records.uncertainty:
        raise ValueError(f"records must hold {column}")
    if n < 0:
        raise ValueError(f"n must not be negative, not {n}")
    return np.flatnonzero(~records.hits(k))
