"""Whether the labels count the classes from another number than the model."""

from dataclasses import dataclass

import numpy as np

from service.core.findings.evidence import Evidence
from service.core.findings.finding import Finding
from service.core.findings.paired_hits import PairedHits

CODE = "labels-shifted"
LEVEL = 1e-3
LEAST_GAIN = 0.1
LEAST_RATIO = 2.0


@dataclass(frozen=True)
class Shift:
    """What to add to every label, around the last class or not, and what that does."""

    offset: int
    wraps: bool
    hits: PairedHits


def best_shift(evidence: Evidence) -> Shift:
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


def labels_shifted(evidence: Evidence) -> Finding | None:
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
    by = f"{best.offset:+d}"
    around = f", counted around the last of the {evidence.n_classes} classes," * best.wraps
    return Finding(
        CODE,
        "warning",
        f"Top-1 accuracy is {hits.before / hits.n_samples:.1%} as sent and "
        f"{hits.after / hits.n_samples:.1%} if every label is moved by {by}{around} on "
        f"{hits.n_samples:,} samples. Add {by} to the labels, or see which class they count from.",
        {
            "offset": best.offset,
            "accuracy": hits.before / hits.n_samples,
            "shifted_accuracy": hits.after / hits.n_samples,
            "samples": hits.n_samples,
        },
    )
