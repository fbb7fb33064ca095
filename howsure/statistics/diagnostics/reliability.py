"""Reliability: predicted probabilities against hit rates, before and after calibration."""

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
    """A group of samples with similar probabilities; at least one.

    Attributes
    ----------
    group : int
        Index of the range, the bin or the class.
    count, hits : int
    said : float
        Mean predicted probability.
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
        """Distance from the interval to the mean probability; negative if it lies inside."""
        return max(self.lower - self.said, self.said - self.upper)


@dataclass(frozen=True)
class Reliability:
    """Probabilities against hit rates on samples that were not used in the fit.

    Attributes
    ----------
    held_out : {"evaluation", "half"}
        The served table on the evaluation set; or half of the calibration set, evaluated by
        the same kind of table fitted to the other half. On its own samples a table always looks
        calibrated.
    n_samples : int
        Number of held-out samples.
    level : float
        Of each single interval.
    before : tuple of ReliabilityRow
        The model's own mass of the ``k`` top classes, in 15 ranges of equal width, as ``ece_15``.
    after : tuple of ReliabilityRow
        Served probabilities by bin.
    classes : tuple of ReliabilityRow
        Served probabilities by predicted class, in descending order of `ReliabilityRow.excess`. At
        most 1,000.
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
    """Compare the probabilities of samples with their hit rates, by group.

    Parameters
    ----------
    judged : Predictions
        By a table, at least one sample.
    raw : ndarray of float64, shape (n_samples,)
        The model's own mass of the top classes.
    predicted : ndarray of int64, shape (n_samples,)
        The top class of each sample.
    held_out : {"evaluation", "half"}
        Origin of the samples.
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
    # Computed from 1 - p, which is exact next to 1.
    said = 1.0 - np.bincount(place, weights=1.0 - probability) / counts
    lower, upper = clopper_pearson(n_hits, counts, level)
    columns = (found, counts, n_hits, said, n_hits / counts, lower, upper)
    return tuple(
        ReliabilityRow(*values) for values in zip(*(c.tolist() for c in columns), strict=True)
    )
