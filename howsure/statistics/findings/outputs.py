"""Findings on outputs: a softmax applied twice, and predictions in place of probabilities."""

import numpy as np
from scipy.special import betaincinv

from howsure.statistics.findings.evidence import Finding, RecordedSet, finding

LEVEL = 1e-4
LEAST_GAP = 0.1
SLACK = 1e-3  # of log-odds: float16 probabilities
LEAST_SAMPLES = 20


def softmax_twice(evidence: RecordedSet) -> Finding | None:
    """Find confidences that a softmax of probabilities cannot exceed, on samples that are easier.

    Probabilities lie between 0 and 1, so that no class of their softmax has more than
    ``e / (e + n_classes - 1)``. If none has, the accuracy is 10 points above the mean confidence,
    and the lower end of its exact interval (Clopper & Pearson 1934, at 0.01 %) is above it, too,
    then the scores are no logits. On samples of a calibrated model the last condition fails all but
    one time in 10,000. A binary model that applies its sigmoid twice names one class only and is
    not found here.
    """
    n, hits = evidence.records.n_samples, evidence.n_hits
    log_odds = evidence.records.top_log_odds[:, 0].astype(np.float64)
    bound = 1.0 - np.log(evidence.n_classes - 1)  # log-odds of e / (e + n_classes - 1)
    if n < LEAST_SAMPLES or log_odds.max() > bound + SLACK:
        return None
    mean = float(evidence.confidence.mean())
    lower = float(betaincinv(max(hits, 1), n - hits + 1, LEVEL)) if hits else 0.0
    if evidence.accuracy - mean < LEAST_GAP or lower <= mean:
        return None
    return finding(
        "softmax-twice",
        "warning",
        "No sample has a confidence above {largest_confidence:.3f}, where a softmax of "
        "probabilities of {words} classes ends at {bound:.3f}, yet Top-1 accuracy is "
        "{accuracy:.1%} (mean confidence {mean_confidence:.1%}, {samples:,} samples). The scores "
        "were probabilities already: say so, or leave out the second softmax.",
        words=f"{evidence.n_classes:,}",
        largest_confidence=float(evidence.confidence.max()),
        bound=float(1.0 / (1.0 + np.exp(-bound))),
        mean_confidence=mean,
        accuracy=evidence.accuracy,
        samples=n,
    )


def said_to_be_logits(n_samples: int) -> Finding:
    """Return the finding for an output that is said to hold logits and shows probabilities."""
    return finding(
        "softmax-twice",
        "warning",
        "output.kind says logits, but on {samples} samples no value is negative and every row "
        "sums to 1: the output already holds probabilities. Omit output.kind or set it to "
        "probabilities.",
        samples=n_samples,
    )


LEAST_SHARE = 0.99


def not_probabilities(evidence: RecordedSet) -> Finding | None:
    """Find probabilities of exactly 1 and 0 in nearly every sample: these are predictions.

    A softmax in float32 that is as sure as can be still leaves the other classes some 1e-10, and
    one class in 100 samples may round to 1; 99 of 100 with not a trace of another class do not.
    Votes that are always right are let pass: there is nothing to calibrate, and nothing wrong.
    """
    n = evidence.records.n_samples
    certain = int(np.count_nonzero(np.isposinf(evidence.records.top_log_odds[:, 0])))
    if not evidence.probabilities or n < LEAST_SAMPLES or certain < LEAST_SHARE * n:
        return None
    if evidence.n_hits == n:
        return None
    return finding(
        "not-probabilities",
        "warning",
        "{certain:,} of {samples:,} samples have a probability of exactly 1 for one class and 0 "
        "for all others, and {accuracy:.1%} of all are right: these are predictions, not "
        "probabilities. Send what the model gives before its argmax.",
        certain=certain,
        samples=n,
        accuracy=evidence.accuracy,
    )
