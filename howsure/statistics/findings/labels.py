"""Findings on labels: shifted by a constant, or permuted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # whose parts are imported when first used

from howsure.statistics.arrays import Hits, Labels
from howsure.statistics.findings.evidence import Finding, RecordedSet, finding
from howsure.statistics.paired_hits import PairedHits

LEVEL = 1e-3
LEAST_GAIN = 0.1
LEAST_RATIO = 2.0
# Other labels win back this share of the accuracy that a set lacks, or they are not why: inputs
# that are turned or recoloured make some classes look like others.
LEAST_REGAINED = 0.8


def _explains(hits: PairedHits, evidence: RecordedSet) -> bool:
    """Tell whether the model with other labels is about as right as on the calibration set."""
    known = evidence.known_accuracy
    return known is None or hits.gain >= LEAST_REGAINED * (known - hits.before / hits.n_samples)


@dataclass(frozen=True)
class Shift:
    """An offset to all labels, with or without wrapping at the last class.

    Attributes
    ----------
    fits : ndarray of bool, shape (n_samples,)
        Whether the shifted label is the predicted class.
    hits : PairedHits
        Counts of hits with the labels as sent and with the shifted labels.
    """

    offset: int
    wraps: bool
    fits: Hits
    hits: PairedHits


# A model that names one class for nearly all samples has usually got spoilt inputs. With other
# labels it would be right about the share of that class, which says nothing about the labels.
ONE_CLASS = 0.95


def _names_one_class(evidence: RecordedSet) -> bool:
    """Tell whether nearly all predictions are one class."""
    counts = np.bincount(evidence.predicted, minlength=1)
    return bool(counts.max() >= ONE_CLASS * counts.sum())


def best_shift(evidence: RecordedSet) -> Shift:
    """Return the offset other than 0 with which most labels equal the predicted classes.

    Among equals it prefers one that does not wrap, then the smallest.
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
    fits = distances % n_classes == offset % n_classes if wraps else distances == offset
    return Shift(offset, wraps, fits, PairedHits.of(distances == 0, fits))


def labels_shifted(evidence: RecordedSet) -> Finding | None:
    """Find that labels shifted by a constant fit the model far better.

    All offsets are tried, with and without wrapping at the last class. The best one must double the
    accuracy and raise it by 10 points, significantly by the exact sign test at 0.1 % with
    Bonferroni's correction for ``3 n_classes - 3`` offsets. For any model, labels that no offset
    improves therefore raise at most one false alarm in 1,000; for a model that is right more often
    than not, practically none. For a model that is always right, 20 samples of 10 classes suffice.
    A permutation that fits 5 points better is reported by ``labels-permuted`` instead. Labels that
    are the model's own names of its classes are never doubted, nor are labels beside a model that
    predicts one class for 95 % of the samples. Beside a known accuracy, the shift must win back
    four fifths of what is lacking.
    """
    if evidence.names_of_model or _names_one_class(evidence):
        return None
    best = best_shift(evidence)
    hits = best.hits
    if not _is_shifted(hits, evidence.n_classes) or not _explains(hits, evidence):
        return None
    if _hits_of_permutation(evidence, better_than=best) is not None:
        return None
    return finding(
        "labels-shifted",
        "warning",
        "Top-1 accuracy is {accuracy:percent} as sent and {shifted_accuracy:percent} with "
        "{offset:+d} added to every label{words}, on {samples:,} samples. Add {offset:+d} to the "
        "labels, or check the index of their first class.",
        words=f" modulo {evidence.n_classes}" * best.wraps,
        offset=best.offset,
        classes=evidence.n_classes,
        accuracy=hits.before / hits.n_samples,
        shifted_accuracy=hits.after / hits.n_samples,
        samples=hits.n_samples,
    )


def _is_shifted(hits: PairedHits, n_classes: int) -> bool:
    tried = 3 * (n_classes - 1)
    far = hits.gain >= LEAST_GAIN and hits.after >= LEAST_RATIO * hits.before
    return far and hits.p_value * tried <= LEVEL


MOST_CLASSES = 2000  # a matching of so many takes 64 MB for a tenth of a second


def labels_permuted(evidence: RecordedSet) -> Finding | None:
    """Find that a permutation of the labels fits the model far better.

    On samples that did not find it, it must raise the accuracy by 10 points, significantly by the
    exact sign test at 0.1 %, which bounds the false alarms. It must also fit 5 points better than
    any shift. If a shift is significant, the labels are wrong in any case, and the permutation
    needs no test of its own. Two swapped classes of 10 are found with 300 samples and an accuracy
    of 87 %; two of 1,000 are not, because they cost less than 10 points. Labels are
    not doubted in the same cases as in `labels_shifted`.
    """
    if evidence.names_of_model or _names_one_class(evidence):
        return None
    shift = best_shift(evidence)
    hits = _hits_of_permutation(evidence, better_than=shift)
    if hits is None or not _explains(hits, evidence):
        return None
    is_found = hits.gain >= LEAST_GAIN and hits.p_value <= LEVEL
    if not is_found and not _is_shifted(shift.hits, evidence.n_classes):
        return None
    renamed = _matching(evidence.labels, evidence.predicted, evidence.n_classes)
    seen = np.unique(evidence.labels)
    sent = seen[renamed[seen] != seen]
    return finding(
        "labels-permuted",
        "warning",
        "Top-1 accuracy is {accuracy:percent} as sent and {matched_accuracy:percent} if "
        "{classes_renamed:,} classes of the labels are permuted, on {samples:,} samples with a "
        "permutation found on the others: {words}. Use the order of classes that the model was "
        "trained with.",
        words=_meanings(
            sent,
            renamed[sent],
            names=evidence.class_names,
            model_names=() if evidence.names_of_labels else evidence.class_names,
        ),
        accuracy=hits.before / hits.n_samples,
        matched_accuracy=hits.after / hits.n_samples,
        classes_renamed=len(sent),
        samples=hits.n_samples,
        classes=evidence.n_classes,
        sent=sent.tolist(),
        meant=renamed[sent].tolist(),
    )


def _hits_of_permutation(evidence: RecordedSet, *, better_than: Shift) -> PairedHits | None:
    """Return the hits with the best permutation, if it beats a shift by 5 points; otherwise None.

    The permutation is the matching of labels and predicted classes with the most hits (Kuhn 1955)
    on the half of the samples with an even tie key. It is judged on the other half, so the large
    number of possible matchings does not matter. Copies of a sample are in the same half.
    """
    labels, predicted = evidence.labels, evidence.predicted
    judged = evidence.records.tie_key % 2 == 1
    if evidence.n_classes > MOST_CLASSES or judged.all() or not judged.any():
        return None
    renamed = _matching(labels[~judged], predicted[~judged], evidence.n_classes)
    hits = PairedHits.of((labels == predicted)[judged], (renamed[labels] == predicted)[judged])
    more = hits.after - np.count_nonzero(better_than.fits[judged])
    return hits if more > LEAST_GAIN / 2 * hits.n_samples else None


MOST_MEANINGS = 5


def _meanings(
    sent: Labels, meant: Labels, *, names: Sequence[str], model_names: Sequence[str]
) -> str:
    """Return which class each label seems to mean: ``label 3 seems to mean class 5``."""
    told = [
        f"label {_named(label, names)} seems to mean class {_named(of, model_names)}"
        for label, of in zip(sent.tolist(), meant.tolist(), strict=True)
    ]
    more = len(told) - MOST_MEANINGS
    return ", ".join(told[:MOST_MEANINGS]) + (f", and {more:,} more" if more > 0 else "")


def _named(index: int, names: Sequence[str]) -> str:
    is_named = index < len(names) and names[index] != str(index)
    return f"{index} ({names[index]})" if is_named else str(index)


def _matching(labels: Labels, predicted: Labels, n_classes: int) -> Labels:
    """Return the new index of each label; its own if no hit suggests another."""
    counts = np.bincount(labels * n_classes + predicted, minlength=n_classes**2)
    confusion = counts.reshape(n_classes, n_classes).astype(np.float64)
    # Less than one hit in total: among equally good matchings, prefer the one that moves fewest.
    confusion[np.diag_indices(n_classes)] += 0.5 / n_classes
    rows, columns = scipy.optimize.linear_sum_assignment(confusion, maximize=True)
    renamed = np.empty(n_classes, dtype=np.int64)
    renamed[rows] = columns
    return renamed
