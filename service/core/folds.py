"""Folds of cross-validation."""

import numpy as np

from service.core.arrays import BinIndex, Hits, TieKeys


def stratified_folds(hits: Hits, tie_keys: TieKeys, *, n_folds: int) -> BinIndex:
    """Deal samples to folds in the order of their tie keys, misses first and then hits.

    Folds differ by at most one in size, in hits and in misses; where there are fewer misses than
    folds, some folds have none. The keys alone decide, not the order of the samples: only samples
    that share a key fall back on it.

    Parameters
    ----------
    hits : ndarray of bool, shape (n_samples,)
    tie_keys : ndarray of uint32, shape (n_samples,)
        Keyed hashes, so as good as random.
    n_folds : int
        At least 2.

    Returns
    -------
    ndarray of int64, shape (n_samples,)
        In ``[0, min(n_folds, n_samples))``, every fold in use.

    Raises
    ------
    ValueError
        If shapes differ or ``n_folds`` is below 2.
    """
    if hits.shape != tie_keys.shape:
        raise ValueError(f"tie_keys must have shape {hits.shape}, not {tie_keys.shape}")
    if n_folds < 2:  # noqa: PLR2004 -- one fold has nothing left to fit on
        raise ValueError(f"n_folds must be at least 2, not {n_folds}")
    dealt = np.lexsort((tie_keys, hits))
    folds = np.empty(hits.size, dtype=np.int64)
    folds[dealt] = np.arange(hits.size) % min(n_folds, max(hits.size, 1))
    return folds
