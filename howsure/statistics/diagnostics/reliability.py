"""How often a probability comes true where it was said: before calibration and after."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from howsure.statistics.arrays import BinIndex, Classes, Hits, Rates
from howsure.statistics.bins.intervals import clopper_pearson
from howsure.statistics.scores import Predictions
from howsure.statistics.scores.binned_error import equal_range_bins

HeldOut: TypeAlias = Literal["evaluation", "half"]

N_RANGES = 15
MOST_CLASSES = 1000


@dataclass(frozen=True)
class ReliabilityRow:
    """Samples that were given about the same probability, at least one.

    Attributes
    ----------
    group : int
        The range, the bin or the class.
    count, hits : int
    said : float
        Mean probability that they were given.
    hit_rate, lower, upper : float
        ``hits / count``, and its exact interval.
    """

    group: int
    count: int
    hits: int
    said: float
    hit_rate: float
    lower: float
    upper: float

    @property
    def excess(self) -> float:
        """By how much the interval misses what was said; below 0 where it holds it."""
        return max(self.lower - self.said, self.said - self.upper)


@dataclass(frozen=True)
class Reliability:
    """Probabilities beside what came true, on samples that fitted neither.

    Attributes
    ----------
    held_out : {"evaluation", "half"}
        The evaluation set, judged by the table that is served; or half of the calibration set,
        judged by a table of the same kind that the other half was fitted to. A table says of its
        own samples what came true of them, and would always look right.
    n_samples : int
        Samples that judge.
    level : float
        Of the intervals, each by itself.
    before : tuple of ReliabilityRow
        The model's own mass of the ``k`` top classes, over 15 ranges of equal width, as ``ece_15``.
    after : tuple of ReliabilityRow
        What the table serves, by its bins.
    classes : tuple of ReliabilityRow
        The same by predicted class, worst first: by how much the interval of the hit rate misses
        what was said. At most 1,000.
    """

    held_out: HeldOut
    n_samples: int
    level: float
    before: tuple[ReliabilityRow, ...]
    after: tuple[ReliabilityRow, ...]
    classes: tuple[ReliabilityRow, ...]


def reliability(
    judged: Predictions, *, raw: Rates, predicted: Classes, held_out: HeldOut, level: float
) -> Reliability:
    """Say how often the probabilities of samples came true, in groups.

    Parameters
    ----------
    judged : Predictions
        By a table, at least one sample.
    raw : ndarray of float64, shape (n_samples,)
        The model's own mass of the top classes.
    predicted : ndarray of int64, shape (n_samples,)
        The best class of each.
    held_out : {"evaluation", "half"}
        What the samples are.
    level : float
        Of each interval.
    """
    by_class = _rows(predicted, judged.probability, judged.hits, level)
    return Reliability(
        held_out=held_out,
        n_samples=judged.n_samples,
        level=level,
        before=_rows(equal_range_bins(raw, N_RANGES), raw, judged.hits, level),
        after=_rows(
            np.asarray(judged.bins, dtype=np.int64), judged.probability, judged.hits, level
        ),
        classes=tuple(sorted(by_class, key=lambda row: -row.excess)[:MOST_CLASSES]),
    )


def _rows(
    groups: BinIndex | Classes, probability: Rates, hits: Hits, level: float
) -> tuple[ReliabilityRow, ...]:
    """Return the groups that hold a sample, ascending."""
    found, place = np.unique(groups, return_inverse=True)
    counts = np.bincount(place)
    n_hits = np.bincount(place[hits], minlength=len(found))
    # By way of 1 - p, which is exact next to 1.
    said = 1.0 - np.bincount(place, weights=1.0 - probability) / counts
    lower, upper = clopper_pearson(n_hits, counts, level)
    columns = (found, counts, n_hits, said, n_hits / counts, lower, upper)
    return tuple(
        ReliabilityRow(*values) for values in zip(*(c.tolist() for c in columns), strict=True)
    )
