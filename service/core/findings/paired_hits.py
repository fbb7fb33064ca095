"""Whether one way to name the classes is right more often than another, on the same samples."""

from dataclasses import dataclass

import numpy as np

from service.core.arrays import Hits


@dataclass(frozen=True)
class PairedHits:
    """Samples that one of two ways alone gets right: McNemar (1947), with the exact sign test.

    Attributes
    ----------
    n_samples : int
    before, after : int
        Hits of either way.
    gained, lost : int
        Samples that only the second way gets right, and only the first.
    """

    n_samples: int
    before: int
    after: int
    gained: int
    lost: int

    @classmethod
    def of(cls, before: Hits, after: Hits) -> "PairedHits":
        """Count the hits of both ways on the same samples."""
        return cls(
            n_samples=len(before),
            before=int(np.count_nonzero(before)),
            after=int(np.count_nonzero(after)),
            gained=int(np.count_nonzero(after & ~before)),
            lost=int(np.count_nonzero(before & ~after)),
        )

    @property
    def gain(self) -> float:
        """How much the accuracy rises."""
        return (self.after - self.before) / self.n_samples

    @property
    def p_value(self) -> float:
        """One-sided: the chance of so many gained were the second way no better than the first."""
        from scipy.stats import binom  # noqa: PLC0415 - half a second, and seldom asked

        return float(binom.sf(self.gained - 1, self.gained + self.lost, 0.5))
