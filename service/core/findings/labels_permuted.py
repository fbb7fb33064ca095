"""Whether the labels name the classes in another order than the model."""

import numpy as np
import scipy  # whose parts are imported when first used

from service.core.arrays import Labels
from service.core.findings.evidence import Evidence
from service.core.findings.finding import Finding
from service.core.findings.labels_shifted import best_shift
from service.core.findings.paired_hits import PairedHits

CODE = "labels-permuted"
LEVEL = 1e-3
LEAST_GAIN = 0.1
MOST_CLASSES = 2000  # a matching of so many takes 64 MB for a tenth of a second


def labels_permuted(evidence: Evidence) -> Finding | None:
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
    return Finding(
        CODE,
        "warning",
        f"Top-1 accuracy is {hits.before / hits.n_samples:.1%} as sent and "
        f"{hits.after / hits.n_samples:.1%} if {moved:,} classes of the labels change their names "
        f"among one another, on {hits.n_samples:,} samples that these were not found by. Bring the "
        "labels into the order of the classes that the model was trained with.",
        {
            "accuracy": hits.before / hits.n_samples,
            "matched_accuracy": hits.after / hits.n_samples,
            "classes_renamed": moved,
            "samples": hits.n_samples,
        },
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
