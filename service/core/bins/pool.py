"""Pool adjacent bins until probability falls with uncertainty."""

from dataclasses import dataclass

import numpy as np

from service.core.arrays import Counts
from service.core.bins.prior import BetaPrior


@dataclass
class _Block:
    """Adjacent bins that became one: the first of them, and their sums."""

    start: int
    hits: int
    count: int

    def probability(self, prior: BetaPrior) -> float:
        return (self.hits + prior.alpha) / (self.count + prior.strength)


def pool_bins(hits: Counts, counts: Counts, prior: BetaPrior) -> Counts:
    """Return the first bin of each pooled block, ascending and starting at 0.

    Adjacent violators are pooled (Ayer et al. 1955) on the *regularised* probability, so that a
    less certain sample never gets a higher one. Regularising after pooling breaks that law: 10 hits
    of 10, then 999 of 1000, need no pooling, and would be served as .991 and then .999. The prior
    counts once per block, so a pooled block may lie above both its parts; hence each merger looks
    back until no violation is left.

    Parameters
    ----------
    hits, counts : ndarray of int64, shape (n_bins,)
        By ascending uncertainty.
    prior : BetaPrior

    Returns
    -------
    ndarray of int64, shape (n_blocks,)
    """
    blocks: list[_Block] = []
    for start, (n_hits, count) in enumerate(zip(hits.tolist(), counts.tolist(), strict=True)):
        block = _Block(start, n_hits, count)
        while blocks and blocks[-1].probability(prior) < block.probability(prior):
            last = blocks.pop()
            block = _Block(last.start, last.hits + block.hits, last.count + block.count)
        blocks.append(block)
    return np.array([block.start for block in blocks], dtype=np.int64)
