"""Sampling designs: samples that count for more than one, and samples that belong together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import BinIndex, Floats

Groups: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SampleDesign:
    """What each sample counts, and which samples belong together.

    Every set has a design, with weights of 1 and groups of one sample by default. These are made
    when they are needed, so that they take no memory beside the records.

    Attributes
    ----------
    weight : ndarray of float64, shape (n_samples,), optional
        As sent: positive and finite; only the ratios matter.
    group : ndarray of int64, shape (n_samples,), optional
        As sent: samples with equal codes belong together.
    """

    weight: Floats | None = None
    group: Groups | None = None

    @property
    def is_plain(self) -> bool:
        """Whether all samples count alike and are independent."""
        return self.weight is None and self.group is None

    def weights(self, n_samples: int) -> Floats:
        """Return the weight of each sample, relative to the first.

        Sums of equal weights are then counts, without rounding.
        """
        if self.weight is None or n_samples == 0:
            return np.broadcast_to(1.0, n_samples)
        return np.asarray(self.weight / self.weight[0])

    def groups(self, n_samples: int) -> Groups:
        """Return the group of each sample, numbered from 0."""
        if self.group is None:
            return np.arange(n_samples)
        return np.unique(self.group, return_inverse=True)[1].reshape(-1)

    def take(self, rows: BinIndex | slice | NDArray[np.bool_]) -> "SampleDesign":
        """Return the design of the samples at ``rows``."""
        return SampleDesign(
            None if self.weight is None else self.weight[rows],
            None if self.group is None else self.group[rows],
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in (self.weight, self.group) if array is not None)


ALIKE = SampleDesign()


def joined(parts: Sequence[SampleDesign]) -> SampleDesign:
    """Return the design of the samples of several parts, all of one kind."""
    weights = [part.weight for part in parts if part.weight is not None]
    groups = [part.group for part in parts if part.group is not None]
    return SampleDesign(
        np.concatenate(weights) if weights else None, np.concatenate(groups) if groups else None
    )
