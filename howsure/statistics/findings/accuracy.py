"""Findings on accuracy: near chance, perfect, or different on the evaluation set."""

import numpy as np
from scipy.special import bdtr, bdtrc

from howsure.shares import percent
from howsure.statistics.effective import effective_share
from howsure.statistics.findings.evidence import Finding, Level, RecordedSet, finding
from howsure.statistics.findings.scores import ABOVE_CHANCE_Z, auroc_of
from howsure.statistics.records.records import Records

CHANCE_LEVEL = 0.01  # level of the test that the accuracy is above chance
POWER_LEVEL = 1e-3  # largest probability that a model as good as it claims fails this test
ENOUGH_SAMPLES = 500


def accuracy_near_chance(evidence: RecordedSet) -> Finding | None:
    """Find an accuracy that is not significantly above a guess, by the exact binomial test at 1 %.

    There are two kinds of guess. A random class is right one time in ``n_classes``; this gives a
    warning. Always naming the most frequent label gives a notice, unless these answers are right
    clearly more often where the model is more certain: a model of rare events may be no more
    accurate and still be useful.

    Few samples prove little. The finding therefore needs either 500 samples, or so many that a
    model as good as its mean confidence would fail the test at most one time in 1,000, or an
    accuracy so far below the guess that a guess has it at most one time in 1,000. For a
    calibrated model with fewer than 500 samples, false alarms are therefore at most 0.1 %: a sum of
    unequal Bernoulli trials has lighter tails than the binomial with their mean (Hoeffding 1956).
    With 500 samples of 10 classes, a model with an accuracy of 17 % passes in 99 of 100 cases; with
    1,000 samples, one with 15 %.
    """
    at_random = 1.0 / evidence.n_classes
    if _is_near(evidence, at_random):
        guess = "a random guess. Labels and inputs may belong to other rows, or the inputs may "
        guess += "differ from the training data."
        below = bdtr(evidence.n_hits, evidence.records.n_samples, 0.5) < CHANCE_LEVEL
        if evidence.is_binary and below:
            guess = "a random guess but below it: with the two classes exchanged it would be "
            guess += (
                f"{percent(1.0 - evidence.accuracy)}. Check their order, in labels and outputs."
            )
        return _near_chance(evidence, "warning", at_random, guess)
    most_frequent = float(evidence.class_counts.max() / evidence.n_samples)
    if _is_near(evidence, most_frequent) and not _knows_more(evidence):
        guess = "always naming the most frequent class."
        return _near_chance(evidence, "notice", most_frequent, guess)
    return None


def _knows_more(evidence: RecordedSet) -> bool:
    """Tell whether answers of the most frequent class are more certain where they are right.

    Where labels belong to other rows, answers of one class are equally often right.
    """
    rows = evidence.predicted == evidence.class_counts.argmax()
    hits = (evidence.labels == evidence.predicted)[rows]
    if hits.all() or not hits.any():
        return False
    uncertainty = -evidence.confidence[rows].astype(np.float32)
    auroc, error, _, _ = auroc_of(uncertainty, hits, evidence.records.design.take(rows))
    return auroc - 0.5 > ABOVE_CHANCE_Z * error


def _near_chance(evidence: RecordedSet, level: Level, chance: float, guess: str) -> Finding:
    return finding(
        "accuracy-near-chance",
        level,
        "Top-1 accuracy is {accuracy:percent} on {samples:,} samples, not clearly above the "
        f"{{chance:percent}} of {guess}",
        accuracy=evidence.accuracy,
        samples=evidence.records.n_samples,
        chance=chance,
    )


def _is_near(evidence: RecordedSet, chance: float) -> bool:
    n, hits = evidence.records.n_samples, evidence.n_hits
    # P(hits or more): at most 0.01 for an accuracy that is clearly above chance.
    if bdtrc(hits - 1, n, chance) <= CHANCE_LEVEL:
        return False
    if n >= ENOUGH_SAMPLES or bdtr(hits, n, chance) <= POWER_LEVEL:
        return True
    needed = int(np.argmax(bdtrc(np.arange(-1, n + 1), n, chance) <= CHANCE_LEVEL))
    return bool(bdtr(needed - 1, n, float(evidence.confidence.mean())) <= POWER_LEVEL)


ENOUGH_WITHOUT_ERROR = 100


def no_errors(evidence: RecordedSet) -> Finding | None:
    """Find a set of 100 samples or more without an error, which may be the training set."""
    n = evidence.records.n_samples
    if n < ENOUGH_WITHOUT_ERROR or not bool(evidence.records.hits(1).all()):
        return None
    return finding(
        "no-errors",
        "notice",
        "All {samples:,} answers are right. If the model was trained on these samples, this says "
        "nothing about new ones.",
        samples=n,
    )


DIFFERENCE_LEVEL = 1e-3
LEAST_DIFFERENCE = 0.05


def accuracy_differs(evidence: RecordedSet) -> Finding | None:
    """Find accuracies of calibration and evaluation set that differ by 5 points or more.

    The test is Fisher's exact test at 0.1 %, two-sided, which bounds the false alarms for two sets
    of one population. With 1,000 samples each, 82 % and 90 % are distinguished in 97 of 100 cases.
    With weights or groups, accuracies are weighted, and a set has its effective samples.
    """
    if evidence.evaluation is None or not evidence.is_whole:
        return None
    accuracy, (ours, n) = _accuracy(evidence.records)
    other, (theirs, m) = _accuracy(evidence.evaluation)
    if abs(accuracy - other) < LEAST_DIFFERENCE:
        return None
    from scipy.stats import fisher_exact  # noqa: PLC0415 - slow to import, rarely needed

    _, p_value = fisher_exact([[ours, n - ours], [theirs, m - theirs]])
    if p_value > DIFFERENCE_LEVEL:
        return None
    return finding(
        "accuracy-differs",
        "warning",
        "Top-1 accuracy is {accuracy:percent} on {samples:,} calibration samples and "
        "{evaluation_accuracy:percent} on {evaluation_samples:,} evaluation samples, a difference "
        "that chance does not explain. One of the two sets may have been trained on, mislabelled "
        "or collected elsewhere.",
        accuracy=accuracy,
        evaluation_accuracy=other,
        samples=evidence.records.n_samples,
        evaluation_samples=evidence.evaluation.n_samples,
    )


def _accuracy(records: Records) -> tuple[float, tuple[int, int]]:
    """Return the weighted accuracy; and effective samples, those that are right and all."""
    hits = records.hits(1)
    found = effective_share(hits, records.design)
    if found is None:
        return float(hits.mean()), (int(np.count_nonzero(hits)), hits.size)
    n = round(found.in_tail(DIFFERENCE_LEVEL / 2.0))
    return found.share, (round(found.share * n), n)
