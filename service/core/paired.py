"""Differences between two ways to a probability, judged on the same folds or samples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.core.arrays import Floats
from service.core.plain_data import PlainData


@dataclass(frozen=True)
class PairedDifference(PlainData):
    """The mean of differences taken pair by pair, which shares out what both have in common.

    Attributes
    ----------
    mean : float
        Of one minus the other.
    standard_error : float or None
        Sample standard deviation of the differences over the root of their number; None for a
        single pair.
    pairs : int
        Folds, or samples, that define both.
    """

    mean: float
    standard_error: float | None
    pairs: int

    @property
    def clear(self) -> bool:
        """Whether the mean is more than two standard errors away from 0."""
        return self.standard_error is not None and abs(self.mean) > 2.0 * self.standard_error


def paired_difference(
    one: Sequence[float | None] | Floats, other: Sequence[float | None] | Floats
) -> PairedDifference | None:
    """Return the mean of ``one - other`` with its standard error; None where no pair has both.

    Raises
    ------
    ValueError
        If there is not one for each other.
    """
    if len(one) != len(other):
        raise ValueError(f"pairs must be as many on both sides, not {len(one)} and {len(other)}")
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        both = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
        one, other = np.array(both, dtype=np.float64).reshape(-1, 2).T
    differences = one - other
    if differences.size == 0:
        return None
    error = None
    if differences.size > 1:
        error = float(differences.std(ddof=1) / np.sqrt(differences.size))
    return PairedDifference(float(differences.mean()), error, differences.size)
