"""Find the bin of an uncertainty."""

import numpy as np

from service.core.arrays import BinIndex, Edges, Uncertainty, as_uncertainty


def assign_bins(uncertainty: Uncertainty, edges: Edges) -> BinIndex:
    """Return the index ``i`` with ``edges[i] < uncertainty <= edges[i + 1]``.

    Bins are closed on the right everywhere (Definition 1 of Oberman et al.).

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
    edges : ndarray of float32, shape (n_bins + 1,)
        Ascending; the outer ones are infinite, so every finite value has a bin.

    Returns
    -------
    ndarray of int64, shape (n_samples,)
        In ``[0, n_bins)``.

    Raises
    ------
    ValueError
        If a value is not finite: it has no bin, and a comparison alone would call NaN the most
        certain of all.
    """
    values = as_uncertainty(uncertainty)
    return np.searchsorted(edges[1:-1], values, side="left").astype(np.int64, copy=False)
