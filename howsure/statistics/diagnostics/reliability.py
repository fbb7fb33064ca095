"""Reliability: predicted probabilities against hit rates, before and after calibration."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from howsure.statistics.arrays import BinIndex, Classes, Hits, Rates
from howsure.statistics.bins.design import SampleDesign
from howsure.statistics.bins.intervals import clopper_pearson
from howsure.statistics.diagnostics.reliability_diagrams import (
    DiagramKind,
    ReliabilityDiagram,
    reliability_diagrams,
)
from howsure.statistics.effective import sums_by_set, tail_factor
from howsure.statistics.scores import SCORES, Predictions
from howsure.statistics.scores.binned_error import equal_range_bins
from howsure.statistics.softmax import BINARY

HeldOut: TypeAlias = Literal["evaluation", "half"]

N_RANGES = 15
MOST_CLASSES = 1000
CLASS_SCORES = ("brier", "nll", "ece_15", "ece_equal_mass", "auroc", "aupr")


@dataclass(frozen=True)
class ReliabilityRow:
    """A group of samples with similar probabilities; at least one.

    Attributes
    ----------
    group : int
        Index of the range, the bin or the class.
    count, hits : int
        Samples, and hits among them.
    said : float
        Mean predicted probability.
    hit_rate, lower, upper : float
        Share of hits, weighted, and its exact interval.
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
class ClassReliability:
    """The probability of class 1 of two, whichever is predicted, against how often it is right.

    Attributes
    ----------
    before, after : tuple of ReliabilityRow
        The model's own probability and the served one, in groups of about as many samples each;
        hits are samples of class 1.
    scores : dict of str to dict of str to float or None
        By ``before`` and ``after``. For `aupr`, class 1 is the positive class.
    """

    before: tuple[ReliabilityRow, ...]
    after: tuple[ReliabilityRow, ...]
    scores: dict[str, dict[str, float | None]]


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
        most 1,000; none of pairs.
    class_1 : ClassReliability or None
        Of two classes.
    diagrams : dict of str to ReliabilityDiagram, optional
        By choice of bins; None for samples with weights.
    """

    held_out: HeldOut
    n_samples: int
    level: float
    before: tuple[ReliabilityRow, ...]
    after: tuple[ReliabilityRow, ...]
    classes: tuple[ReliabilityRow, ...]
    class_1: ClassReliability | None = None
    diagrams: dict[DiagramKind, ReliabilityDiagram] | None = None


def reliability(
    judged: Predictions,
    *,
    raw: Rates,
    predicted: Classes,
    n_classes: int,
    held_out: HeldOut,
    level: float,
) -> Reliability:
    """Compare the probabilities of samples with their hit rates, by group.

    Parameters
    ----------
    judged : Predictions
        By a table, at least one sample.
    raw : ndarray of float64, shape (n_samples,)
        The model's own mass of the top classes.
    predicted : ndarray of int64, shape (n_samples,)
        The predicted class of each sample.
    n_classes : int
        Classes that were recorded: 1 of pairs.
    held_out : {"evaluation", "half"}
        Origin of the samples.
    level : float
        Of each interval.
    """

    def rows(parts: BinIndex | Classes, probability: Rates) -> tuple[ReliabilityRow, ...]:
        return _rows(parts, probability, judged.hits, level, judged.design)

    by_class = rows(predicted, judged.probability) if n_classes > 1 else ()
    return Reliability(
        held_out=held_out,
        n_samples=judged.n_samples,
        level=level,
        before=rows(equal_range_bins(raw, N_RANGES), raw),
        after=rows(np.asarray(judged.bins, dtype=np.int64), judged.probability),
        classes=tuple(sorted(by_class, key=lambda row: -row.excess)[:MOST_CLASSES]),
        class_1=_of_class_1(judged, raw, predicted == 1, level) if n_classes == BINARY else None,
        diagrams=reliability_diagrams(judged, raw),
    )


def _of_class_1(judged: Predictions, raw: Rates, is_1: Hits, level: float) -> ClassReliability:
    """Compare P(class 1) with how often the label is 1; ``is_1`` tells where it is predicted."""
    labels = judged.hits == is_1
    rows, scores = {}, {}
    for side, probability in (("before", raw), ("after", judged.probability)):
        p = np.where(is_1, probability, 1.0 - probability)
        cuts = np.unique(np.quantile(p, np.arange(1, N_RANGES) / N_RANGES))
        parts = np.searchsorted(cuts, p).astype(np.int64)
        rows[side] = _rows(parts, p, labels, level, judged.design)
        # The event that class 0 is right: its errors, class 1, are the positives.
        of_0 = Predictions(
            uncertainty=p,
            hits=~labels,
            probability=1.0 - p,
            log_floor=0.5 / judged.n_samples,
            design=judged.design,
        )
        scores[side] = {name: SCORES[name].compute(of_0) for name in CLASS_SCORES}
    return ClassReliability(rows["before"], rows["after"], scores)


def _rows(
    parts: BinIndex | Classes, probability: Rates, hits: Hits, level: float, design: SampleDesign
) -> tuple[ReliabilityRow, ...]:
    """Return the bins, ranges or classes that hold a sample, ascending."""
    found, place = np.unique(parts, return_inverse=True)
    counts = np.bincount(place)
    n_hits = np.bincount(place[hits], minlength=len(found))
    weights = design.weights(hits.size)
    # Computed from 1 - p, which is exact next to 1.
    said = 1.0 - np.bincount(place, weights * (1.0 - probability)) / np.bincount(place, weights)
    rates, worth = n_hits / counts, counts.astype(np.float64)
    if not design.is_plain:
        sums = sums_by_set(place, hits, len(found), design)
        rates, worth = sums.shares, sums.sizes * tail_factor(sums.groups, (1.0 - level) / 2.0)
    lower, upper = clopper_pearson(rates * worth, worth, level)
    columns = (found, counts, n_hits, said, rates, lower, upper)
    return tuple(
        ReliabilityRow(*values) for values in zip(*(c.tolist() for c in columns), strict=True)
    )
