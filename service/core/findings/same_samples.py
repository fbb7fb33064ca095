"""Which samples are copies of another, told from their records."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.records import Records

TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class SameSamples:
    """Groups of like samples: the group of each, by number, shape (n_samples,)."""

    group: NDArray[np.int64]

    @property
    def n_copies(self) -> int:
        """How many samples are there beyond the first of each group."""
        return len(self.group) - len(np.unique(self.group))


def same_samples(records: Records) -> SameSamples:
    """Group samples that have one tie key and one answer.

    The key is a hash of 32 bits of what was sent: of 100,000 samples about one pair shares a key by
    chance, of a million 116 pairs. Like samples have the same answer as well, to the last digits,
    which may differ with the place in a batch: the same class, and log-odds, squares and
    log-partition within 0.1 %. Pairs that agree by chance in all of it are less than one in a
    thousand of those, so that no threshold here can see them. A model that draws at random answers
    copies differently, and hides them.
    """
    first = records.top_classes[:, 0]
    odds = records.top_log_odds[:, 0].astype(np.float64)
    order = np.lexsort((odds, first, records.tie_key))
    same = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for exact in (records.tie_key.astype(np.int64), first.astype(np.int64)):
        same &= exact[order][1:] == exact[order][:-1]
    middle = records.log_sum_exp[:, records.log_sum_exp.shape[1] // 2].astype(np.float64)
    for values in (odds, records.sum_squares, middle):
        same &= _close(values[order][1:], values[order][:-1])
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.concatenate([[0], np.cumsum(~same)])[: len(order)]
    return SameSamples(group)


def _close(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):  # infinite log-odds: equal ones are the same
        near = np.abs(one - other) <= TOLERANCE * (1.0 + np.abs(one))
    return np.asarray((one == other) | (near & np.isfinite(one) & np.isfinite(other)))
