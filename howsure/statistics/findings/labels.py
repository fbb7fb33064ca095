"""Findings on labels: shifted by a constant, or permuted."""

from dataclasses import dataclass

import numpy as np
import scipy  # whose parts are imported when first used
from scipy.special import bdtrc

from howsure.statistics.arrays import Hits, Labels
from howsure.statistics.findings.evidence import Finding, RecordedSet, finding


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
        return float(bdtrc(self.gained - 1, self.gained + self.lost, 0.5))


LEVEL = 1e-3
LEAST_GAIN = 0.1
LEAST_RATIO = 2.0


@dataclass(frozen=True)
class Shift:
    """What to add to every label, around the last class or not, and what that does."""

    offset: int
    wraps: bool
    hits: PairedHits


def best_shift(evidence: RecordedSet) -> Shift:
    """Return the offset other than 0 that makes most labels the model's classes.

    Of equally good ones the one that does not wrap, then the smallest.
    """
    n_classes = evidence.n_classes
    distances = evidence.predicted - evidence.labels
    last = n_classes - 1
    plain = np.bincount(distances + last, minlength=2 * last + 1)  # of -last .. last
    plain[last] = -1  # no shift at all
    offsets = np.arange(-last, last + 1)
    order = np.lexsort((np.abs(offsets), -plain))
    offset, wraps = int(offsets[order[0]]), False
    around = np.bincount(distances % n_classes, minlength=n_classes)[1:]
    if around.max() > plain[order[0]]:
        offset, wraps = int(np.argmax(around)) + 1, True
        offset -= n_classes if offset > n_classes // 2 else 0
    moved = distances % n_classes == offset % n_classes if wraps else distances == offset
    return Shift(offset, wraps, PairedHits.of(distances == 0, np.asarray(moved)))


def labels_shifted(evidence: RecordedSet) -> Finding | None:
    """Find that every label moved by one number fits the model far better.

    All offsets are tried, as they are and around the last class. The best one must double the
    accuracy, raise it by 10 points, and do so by the exact sign test at 0.1 % shared out among the
    ``3 n_classes - 3`` that were tried (Bonferroni). So whatever the model, labels that are no
    better off by another offset raise an alarm at most one time in 1,000; those of a model that is
    right more often than not raise none that one could wait for. Twenty samples of 10 classes
    suffice for a model that is always right.
    """
    best = best_shift(evidence)
    hits = best.hits
    tried = 3 * (evidence.n_classes - 1)
    far = hits.gain >= LEAST_GAIN and hits.after >= LEAST_RATIO * hits.before
    if not far or hits.p_value * tried > LEVEL:
        return None
    return finding(
        "labels-shifted",
        "warning",
        "Top-1 accuracy is {accuracy:.1%} as sent and {shifted_accuracy:.1%} if every label is "
        "moved by {offset:+d}{words} on {samples:,} samples. Add {offset:+d} to the labels, or see "
        "which class they count from.",
        words=f", counted around the last of the {evidence.n_classes} classes," * best.wraps,
        offset=best.offset,
        accuracy=hits.before / hits.n_samples,
        shifted_accuracy=hits.after / hits.n_samples,
        samples=hits.n_samples,
    )


MOST_CLASSES = 2000  # a matching of so many takes 64 MB for a tenth of a second


def labels_permuted(evidence: RecordedSet) -> Finding | None:
    """Find that the labels fit far better once they are renamed one to one.

    The renaming is the matching of labels and predicted classes with the most hits (Kuhn 1955) on
    one half of the samples, those of even tie key; it is judged on the other half, of which it
    knows nothing, so that the many matchings there are of many classes win nothing by chance. There
    it must raise the accuracy by 10 points, by the exact sign test at 0.1 %: false alarms are at
    most so many, and copies of a sample share their half. A shift that does as well is left to
    ``labels-shifted``. Two of 10 classes that are swapped are found with 300 samples and an
    accuracy of 87 %; two of 1,000 are not, as they cost less than 10 points.
    """
    if evidence.n_classes > MOST_CLASSES:
        return None
    learning = evidence.records.tie_key % 2 == 0
    labels, predicted = evidence.labels, evidence.predicted
    if learning.all() or not learning.any():
        return None
    renamed = _matching(labels[learning], predicted[learning], evidence.n_classes)
    judged = ~learning
    before = labels[judged] == predicted[judged]
    hits = PairedHits.of(before, renamed[labels[judged]] == predicted[judged])
    if hits.gain < LEAST_GAIN or hits.p_value > LEVEL:
        return None
    shifted = best_shift(evidence).hits
    if shifted.after / shifted.n_samples >= hits.after / hits.n_samples - LEAST_GAIN / 2:
        return None
    moved = int(np.count_nonzero(renamed[np.unique(labels)] != np.unique(labels)))
    return finding(
        "labels-permuted",
        "warning",
        "Top-1 accuracy is {accuracy:.1%} as sent and {matched_accuracy:.1%} if "
        "{classes_renamed:,} classes of the labels change their names among one another, on "
        "{samples:,} samples that these were not found by. Bring the labels into the order of the "
        "classes that the model was trained with.",
        accuracy=hits.before / hits.n_samples,
        matched_accuracy=hits.after / hits.n_samples,
        classes_renamed=moved,
        samples=hits.n_samples,
    )


def _matching(labels: Labels, predicted: Labels, n_classes: int) -> Labels:
    """Return the new name of each label; its own where no hit tells otherwise."""
    counts = np.bincount(labels * n_classes + predicted, minlength=n_classes**2)
    confusion = counts.reshape(n_classes, n_classes).astype(np.float64)
    # Less than a hit altogether: of equally good matchings the one that moves fewest labels.
    confusion[np.diag_indices(n_classes)] += 0.5 / n_classes
    rows, columns = scipy.optimize.linear_sum_assignment(confusion, maximize=True)
    renamed = np.empty(n_classes, dtype=np.int64)
    renamed[rows] = columns
    return renamed
