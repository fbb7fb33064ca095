"""Differences between two ways to a probability, judged on the same folds or samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from howsure.statistics.arrays import Floats
from howsure.statistics.bins.table import BinTable
from howsure.statistics.fit.cross_validation import FoldScore
from howsure.statistics.records.records import Records

Values: TypeAlias = Sequence[float | None] | Floats


@dataclass(frozen=True)
class PairedDifference:
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


def paired_differences(
    one: Mapping[str, Values], other: Mapping[str, Values]
) -> dict[str, PairedDifference]:
    """Return the differences ``one - other`` by name, without those that have no finite mean."""
    with np.errstate(invalid="ignore"):  # both infinite: no number, and left out
        found = {name: paired_difference(one[name], other[name]) for name in one}
    return {
        name: difference
        for name, difference in found.items()
        if difference is not None and np.isfinite(difference.mean)
    }


def paired_difference(one: Values, other: Values) -> PairedDifference | None:
    """Return the mean of ``one - other`` with its standard error; None if no pair has both.

    Raises
    ------
    ValueError
        If the lengths differ.
    """
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


COMPARED = ("nll", "brier")


@dataclass(frozen=True)
class Comparison:
    """How the second of two calibrations does against the first, for one event.

    Attributes
    ----------
    k : int
    paired : bool
        Whether the differences are sample by sample on the same samples; else they are between
        means over folds, and what both share makes their standard errors too large.
    differences : dict of str to PairedDifference
        ``nll`` and ``brier`` of the second minus those of the first, and ``accuracy`` where
        paired. Negative losses and a positive accuracy speak for the second. What is infinite is
        left out.
    """

    k: int
    paired: bool
    differences: dict[str, PairedDifference]


@dataclass(frozen=True, eq=False)
class Served:
    """What one calibration serves for an event, and its records of the samples to compare on."""

    table: BinTable
    column: str
    records: Records


def compare_on_samples(k: int, first: Served, second: Served) -> Comparison:
    """Compare two served tables on the same samples, in the same order.

    Raises
    ------
    ValueError
        If the records are not of equally many samples, or their labels differ.
    """
    if not np.array_equal(first.records.label, second.records.label):
        raise ValueError("records must be of the same samples: their labels differ")
    differences = paired_differences(_losses(k, second), _losses(k, first))
    return Comparison(k=k, paired=True, differences=differences)


def compare_on_folds(
    k: int, first: dict[str, FoldScore], second: dict[str, FoldScore]
) -> Comparison:
    """Compare cross-validated scores of two calibrations that share no samples."""
    differences = {}
    for name in COMPARED:
        ours, theirs = first.get(name), second.get(name)
        if ours is None or theirs is None or ours.mean is None or theirs.mean is None:
            continue
        differences[name] = PairedDifference(
            mean=theirs.mean - ours.mean,
            standard_error=_joint_error(ours, theirs),
            pairs=min(ours.folds, theirs.folds),
        )
    return Comparison(k=k, paired=False, differences=differences)


def _joint_error(ours: FoldScore, theirs: FoldScore) -> float | None:
    if ours.std is None or theirs.std is None:
        return None
    return float(np.sqrt(ours.std**2 / ours.folds + theirs.std**2 / theirs.folds))


def _losses(k: int, served: Served) -> dict[str, Floats]:
    """Return each sample's loss; ``accuracy`` is whether the event holds."""
    hits = served.records.hits(k)
    probability = served.table.look_up(served.records.uncertainty[served.column]).probability
    right = np.where(hits, probability, 1.0 - probability)
    with np.errstate(divide="ignore"):  # the truth was given no chance: infinite
        nll = -np.log(right)
    return {
        "nll": nll,
        "brier": (1.0 - right) ** 2,
        "accuracy": hits.astype(np.float64),
    }
