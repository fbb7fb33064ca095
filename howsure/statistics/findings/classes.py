"""Findings on classes: without a label, never predicted, or too few samples for the bins."""

import numpy as np
from scipy.special import expit, pdtrc

from howsure.statistics.arrays import Classes
from howsure.statistics.bins.fit import LEAST_SAMPLES_PER_BIN, candidate_bins
from howsure.statistics.findings.evidence import Finding, LabelCounts, RecordedSet, finding

LEVEL = 1e-3
# Classes that a message names.
SHOWN = 5


def classes_not_seen(labelled: LabelCounts) -> Finding | None:
    """Find classes of the model without a label, more than a small set omits by chance.

    If all ``K`` classes are equally frequent, ``n`` samples omit ``K (1 - 1/K)^n`` classes on
    average. Their number varies at most as much as a Poisson variable of that mean, because the
    counts are negatively associated. The finding needs a number among the rarest 0.1 % of that
    variable, which bounds the false alarms on balanced sets of any size. Sets with rare classes get
    the finding too, as they should. All labels count, however few samples were recorded. A set with
    labels of one class gives a warning, because it tells nothing about the others.
    """
    n, n_classes = labelled.n_samples, labelled.n_classes
    missing = np.flatnonzero(labelled.class_counts == 0)
    expected = n_classes * (1.0 - 1.0 / n_classes) ** n
    if missing.size == 0 or pdtrc(missing.size - 1, expected) > LEVEL:
        return None
    is_one = missing.size == n_classes - 1
    template = (
        "All {samples:,} samples have the same label, {words}. For the model's other classes "
        "nothing was measured, so their probabilities are meaningless."
        if is_one
        else "{missing:,} of the model's {classes:,} classes have no label among {samples:,} "
        "samples: {words}. Probabilities for these classes are estimated from other classes."
    )
    return finding(
        "classes-not-seen",
        "warning" if is_one else "notice",
        template,
        words=first_few(np.flatnonzero(labelled.class_counts) if is_one else missing),
        missing=int(missing.size),
        classes=n_classes,
        samples=n,
    )


def first_few(classes: Classes) -> str:
    """Return the first classes as text."""
    return ", ".join(map(str, classes[:SHOWN].tolist())) + ", …" * (len(classes) > SHOWN)


WARNING_SHARE = 0.5


def classes_not_predicted(evidence: RecordedSet) -> Finding | None:
    """Find labelled classes that the model never predicts.

    Suppose each class is recognised at least half as often as the average, which is the accuracy
    ``a``. A class with ``n_c`` labels is then never predicted with probability at most
    ``(1 - a/2)^n_c``. The sum over classes bounds the mean number of such classes, and a Poisson
    variable of that mean must reach the observed number at most one time in 1,000. Small sets, many
    classes and a model near chance therefore give no finding. All samples must be recorded, because
    the first ones may omit classes. Half of the labelled classes or more give a warning, but of
    two classes: the rare one of a good model may never be the more probable one.
    """
    if not evidence.is_whole:
        return None
    counts = np.bincount(evidence.records.top_classes[:, 0], minlength=evidence.n_classes)
    labelled = evidence.class_counts > 0
    never = np.flatnonzero(labelled & (counts == 0))
    chances = (1.0 - evidence.accuracy / 2.0) ** evidence.class_counts[labelled]
    if never.size == 0 or pdtrc(never.size - 1, float(chances.sum())) > LEVEL:
        return None
    if evidence.is_binary:
        return _never_of_two(evidence, int(never[0]))
    n_labelled = int(labelled.sum())
    return finding(
        "classes-not-predicted",
        "warning" if never.size >= WARNING_SHARE * n_labelled else "notice",
        "{never_predicted:,} of {labelled_classes:,} labelled classes are never predicted in "
        "{samples:,} samples: {words}. {samples_of_them:,} samples have these labels, and all of "
        "their predictions are wrong.",
        words=first_few(never),
        never_predicted=int(never.size),
        labelled_classes=n_labelled,
        samples_of_them=int(evidence.class_counts[never].sum()),
        samples=evidence.n_samples,
    )


def _never_of_two(evidence: RecordedSet, never: int) -> Finding:
    """Return the notice that one class of two is never predicted, with a threshold to start at."""
    most = float(expit(-evidence.log_odds.min()))
    n_labels, n = int(evidence.class_counts[never]), evidence.n_samples
    start = min(n_labels / n, most)
    return finding(
        "classes-not-predicted",
        "notice",
        "Class {never_predicted} is never predicted in {samples:,} samples, {samples_of_them:,} of "
        "which have this label: the model's probability of it is at most {largest:percent}. What "
        "such a model tells is the probability of class 1; `decision_threshold` says from which "
        "one on class 1 is predicted.",
        never_predicted=never,
        largest=most,
        threshold=start if never else 1.0 - start,
        samples_of_them=n_labels,
        samples=n,
    )


def few_samples_for_bins(labelled: LabelCounts) -> Finding | None:
    """Find fewer than 25 samples per bin; with ``auto``, fewer than two bins need.

    This is a count, not a statistical test.
    """
    n, bins = labelled.n_samples, labelled.bins
    least = LEAST_SAMPLES_PER_BIN
    if bins == "auto":
        if len(candidate_bins(n)) > 1:
            return None
        return finding(
            "few-samples-for-bins",
            "warning",
            "There is only one bin for {words}: too few to check that answers differ in how often "
            "they are right. Two bins need {least_samples} samples.",
            words=_samples(n),
            samples=n,
            bins=1,
            least_samples=2 * least,
        )
    if bins == 1 or n >= least * bins:
        return None
    return Finding(
        "few-samples-for-bins",
        "warning",
        f"{bins} bins share {_samples(n)}, about {n / bins:.3g} per bin. With fewer than {least} "
        f"per bin, probabilities are imprecise. Use {max(1, n // least)} bins or fewer, or add "
        "samples.",
        {"samples": n, "bins": bins, "least_samples": least * bins},
    )


def _samples(number: int) -> str:
    return "1 calibration sample" if number == 1 else f"{number:,} calibration samples"
