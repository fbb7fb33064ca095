"""Samples ranked by uncertainty, with those of equal uncertainty taken together."""

from dataclasses import dataclass

import numpy as np

from service.core.arrays import Counts, Floats, Hits, Uncertainty


@dataclass(frozen=True, eq=False)
class TiedBlocks:
    """Blocks of equal uncertainty, most certain first.

    Attributes
    ----------
    counts, errors : ndarray of int64, shape (n_blocks,)
        Samples in the block, at least one, and those without a hit.
    """

    counts: Counts
    errors: Counts


def tied_blocks(uncertainty: Uncertainty | Floats, hits: Hits) -> TiedBlocks:
    """Group samples by equal uncertainty.

    Parameters
    ----------
    uncertainty : ndarray of float32 or float64, shape (n_samples,)
        Free of NaN.
    hits : ndarray of bool, shape (n_samples,)
    """
    order = np.argsort(uncertainty, kind="stable")
    ranked = uncertainty[order]
    is_start = np.ones(len(ranked), dtype=np.bool_)
    is_start[1:] = ranked[1:] != ranked[:-1]
    starts = np.flatnonzero(is_start)
    errors = np.concatenate([[0], np.cumsum(~hits[order])])
    ends = np.append(starts[1:], len(ranked))
    return TiedBlocks(counts=ends - starts, errors=errors[ends] - errors[starts])
