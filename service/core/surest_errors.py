"""Samples of which the measure was surest, and that are wrong all the same."""

import numpy as np
from numpy.typing import NDArray

from service.core.missed import missed_rows
from service.core.records import Records


def surest_errors(records: Records, k: int, column: str, *, n: int) -> NDArray[np.int64]:
    """Return the rows of at most ``n`` samples with ``X = 0``, the least uncertain first.

    Of equals, by tie key.

    Parameters
    ----------
    records : Records
    k : int
        The Top-k event.
    column : str
        The column of the records that they are ordered by.
    n : int

    Raises
    ------
    ValueError
        If the records lack the column, or ``n`` is negative.
    """
    missed = missed_rows(records, k, column, n=n)
    order = np.lexsort((records.tie_key[missed], records.uncertainty[column][missed]))
    return missed[order[:n]]
