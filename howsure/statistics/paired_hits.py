"""Hits of two methods on the same samples."""

from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrc

from howsure.statistics.arrays import Hits


@dataclass(frozen=True)
class PairedHits:
    """Hits of two methods on the same samples: McNemar (1947), with the exact sign test.

    Attributes
    ----------
    n_samples : int
    before, after : int
        Hits of the first and of the second method.
    gained, lost : int
        Samples that only the second method gets right, and only the first.
    """

    n_samples: int
    before: int
    after: int
    gained: int
    lost: int

    @classmethod
    def of(cls, before: Hits, after: Hits) -> "PairedHits":
        """Count the hits of both methods on the same samples."""
        return cls(
            n_samples=len(before),
            before=int(np.count_nonzero(before)),
            after=int(np.count_nonzero(after)),
            gained=int(np.count_nonzero(after & ~before)),
            lost=int(np.count_nonzero(before & ~after)),
        )

    @property
    def gain(self) -> float:
        """Increase in accuracy."""
        return (self.after - self.before) / self.n_samples

    @property
    def p_value(self) -> float:
        """One-sided p-value under the hypothesis that the second method is not better."""
        return float(bdtrc(self.gained - 1, self.gained + self.lost, 0.5))
