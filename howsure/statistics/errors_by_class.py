"""Errors among accepted samples by class: of answers that name it, and of its samples."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import NONE_OF_THESE, BinIndex, Hits, Rates
from howsure.statistics.bins.design import ALIKE, SampleDesign, joined
from howsure.statistics.bins.intervals import clopper_pearson, proportion_interval
from howsure.statistics.effective import effective_share
from howsure.statistics.ranking import RankedSamples, rank_samples
from howsure.statistics.records.records import Records

MOST_CLASSES = 5
ORDER_LEVEL = 0.95  # of the intervals that order classes


@dataclass(frozen=True)
class ClassShare:
    """How many accepted samples of some kind are errors.

    Attributes
    ----------
    n_samples, n_errors : int
        These samples, and errors among them.
    share : float or None
        Weighted share of errors; None if there are no samples.
    interval : tuple of float or None
        Of Clopper & Pearson (1934), with weights or groups of the effective samples.
    """

    n_samples: int
    n_errors: int
    share: float | None = None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class ClassErrors:
    """The errors among accepted samples that concern one class.

    Attributes
    ----------
    index : int
        Of the class.
    named : ClassShare
        Answers that name the class; errors have another label.
    labelled : ClassShare
        Samples with this label; errors are answered with another class.
    """

    index: int
    named: ClassShare
    labelled: ClassShare


def errors_by_class(
    labels: BinIndex,
    answers: BinIndex,
    accepted: NDArray[np.bool_],
    level: float,
    design: SampleDesign = ALIKE,
) -> tuple[ClassErrors, ...]:
    """Return the classes with the largest shares of errors among accepted samples, at most five.

    They are ordered by the lower end of a 95 % interval, the larger of the two shares', so that a
    class with few samples does not come before one whose errors are certain. Weights and groups do
    not change the order.

    Parameters
    ----------
    labels, answers : ndarray of int, shape (n_samples,)
        Labels and predicted classes, from 0. A label `NONE_OF_THESE` counts for the class that is
        answered only.
    accepted : ndarray of bool, shape (n_samples,)
    level : float
        The level of the intervals, such as 0.95.
    design : SampleDesign
    """
    labels, answers, kept = labels[accepted], answers[accepted], design.take(accepted)
    wrong = labels != answers
    n_classes = int(max(labels.max(initial=-1), answers.max(initial=-1))) + 1
    ends = (_lower_ends(classes, wrong, n_classes) for classes in (answers, labels))
    least = np.maximum(*ends)
    worst = np.argsort(-least, kind="stable")[:MOST_CLASSES]
    return tuple(
        ClassErrors(
            index,
            _class_share(answers == index, wrong, level, kept),
            _class_share(labels == index, wrong, level, kept),
        )
        for index in worst[least[worst] >= 0.0].tolist()
    )


def _lower_ends(classes: BinIndex, wrong: Hits, n_classes: int) -> Rates:
    """Return the lower end of the share of errors of each class, -1 without samples."""
    is_class = classes != NONE_OF_THESE
    counts = np.bincount(classes[is_class], minlength=n_classes)
    errors = np.bincount(classes[is_class & wrong], minlength=n_classes)
    lower, _ = clopper_pearson(errors, np.maximum(counts, 1), ORDER_LEVEL)
    return np.where(counts > 0, lower, -1.0)


def _class_share(
    chosen: NDArray[np.bool_], wrong: Hits, level: float, design: SampleDesign
) -> ClassShare:
    events = wrong[chosen]
    n_samples, n_errors = events.size, int(np.count_nonzero(events))
    if n_samples == 0:
        return ClassShare(0, 0)
    effective = effective_share(events, design.take(chosen))
    share = n_errors / n_samples if effective is None else effective.share
    interval = proportion_interval(n_errors, n_samples, level, effective)
    return ClassShare(n_samples, n_errors, share, interval)


@dataclass(frozen=True, eq=False)
class LabelledSamples:
    """Samples by ascending uncertainty, with their labels and answers.

    Attributes
    ----------
    ranked : RankedSamples
    labels, answers : ndarray of int32, shape (n_samples,), optional
        In the same order; None for pairs, which have no classes.
    """

    ranked: RankedSamples
    labels: BinIndex | None = None
    answers: BinIndex | None = None

    @classmethod
    def of(cls, parts: Iterable[Records], column: str) -> Self:
        """Read the parts of a set one after the other; of Top-1, by the uncertainty of a column."""
        found = [
            (
                part.uncertainty[column],
                part.hits(1),
                part.label.astype(np.int32, copy=False),
                part.top_classes[:, 0].astype(np.int32),
                part.has_classes,
                part.design,
            )
            for part in parts
        ]
        values, hits, labels, answers = (
            np.concatenate([part[place] for part in found]) for place in range(4)
        )
        order = np.argsort(values, kind="stable")
        design = joined([part[-1] for part in found])
        ranked = rank_samples(values[order], hits[order], design.take(order))
        has_classes = found[0][-2]
        return cls(ranked, labels[order], answers[order]) if has_classes else cls(ranked)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        ranked, design = self.ranked, self.ranked.design
        arrays = (ranked.values, ranked.hits, ranked.ends, self.labels, self.answers)
        return design.nbytes + sum(array.nbytes for array in arrays if array is not None)

    def errors_by_class(self, threshold: float, level: float) -> tuple[ClassErrors, ...]:
        """Return the errors among the samples with ``U <= threshold``; of pairs none."""
        if self.labels is None or self.answers is None:
            return ()
        accepted = self.ranked.values.astype(np.float32, copy=False) <= np.float32(threshold)
        return errors_by_class(self.labels, self.answers, accepted, level, self.ranked.design)
