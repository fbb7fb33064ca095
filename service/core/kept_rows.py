"""Which samples are worth keeping when the rest of a set goes."""

import numpy as np
from numpy.typing import NDArray

from service.core.bins.table import BinTable
from service.core.mislabelled import mislabelled_candidates
from service.core.records import Records
from service.core.surest_errors import surest_errors


def choose_kept_rows(
    records: Records, k: int, column: str, table: BinTable, *, n: int
) -> NDArray[np.int64]:
    """Return the rows of at most ``n`` samples that a person or a test wants to see, ascending.

    A third of them those whose label is most likely wrong (`mislabelled_candidates`), a third the
    most certain errors, and the rest by tie key, which is as good as at random; of fewer
    candidates the rest has more.

    Parameters
    ----------
    records : Records
        The calibration set.
    k : int
        The Top-k event.
    column : str
        The column of the records that ``table`` was fitted to.
    table : BinTable
    n : int

    Raises
    ------
    ValueError
        If the records lack the column, or ``n`` is negative.
    """
    suspects = mislabelled_candidates(records, k, column, table, n=n // 3)
    chosen = np.zeros(records.n_samples, np.bool_)
    chosen[[candidate.index for candidate in suspects]] = True
    chosen[surest_errors(records, k, column, n=n // 3)] = True
    others = np.flatnonzero(~chosen)
    room = n - int(np.count_nonzero(chosen))
    chosen[others[np.argsort(records.tie_key[others], kind="stable")[:room]]] = True
    return np.flatnonzero(chosen)
