"""Findings on outputs: a softmax applied twice, and predictions instead of probabilities."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from howsure.statistics.findings.evidence import Finding, RecordedSet, finding

LEVEL = 1e-4
LEAST_GAP = 0.1
SLACK = 1e-3  # of log-odds: float16 probabilities
LEAST_SAMPLES = 20


def softmax_twice(evidence: RecordedSet) -> Finding | None:
    """Find a softmax of probabilities: confidences below its bound, but a much higher accuracy.

    Probabilities lie between 0 and 1, so no class of their softmax exceeds
    ``e / (e + n_classes - 1)``. The scores are not logits if no confidence exceeds this bound, the
    accuracy is 10 points above the mean confidence, and the lower end of its exact interval
    (Clopper & Pearson 1934, at 0.01 %) is above the mean confidence as well. For a calibrated model
    the last condition fails in all but one of 10,000 cases. A binary model that applies its sigmoid
    twice predicts only one class and is not found.

    Scores that are read as logits give a warning. Probabilities give a notice: boosted trees of
    scikit-learn's AdaBoost are as unsure without any second softmax.
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
    reading = (
        "The scores are probabilities already: declare them as such, or omit the second softmax."
    )
    if evidence.probabilities:
        reading = (
            "Either the model applies a softmax to probabilities, or it is unsure by design, as "
            "AdaBoost is. The calibration corrects the latter; nothing needs to be done then."
        )
    return finding(
        "softmax-twice",
        "notice" if evidence.probabilities else "warning",
        "No sample has a confidence above {largest_confidence:.3f}. A softmax of probabilities of "
        "{words} classes is at most {bound:.3f}. Yet Top-1 accuracy is {accuracy:percent} (mean "
        f"confidence {{mean_confidence:percent}}, {{samples:,}} samples). {reading}",
        words=f"{evidence.n_classes:,}",
        largest_confidence=float(evidence.confidence.max()),
        bound=float(1.0 / (1.0 + np.exp(-bound))),
        mean_confidence=mean,
        accuracy=evidence.accuracy,
        samples=n,
    )


def said_to_be_logits(n_samples: int) -> Finding:
    """Return the finding for an output declared as logits that holds probabilities."""
    return finding(
        "softmax-twice",
        "warning",
        "output.kind says logits, but on {samples} samples no value is negative and every row "
        "sums to 1: the output already holds probabilities. Omit output.kind or set it to "
        "probabilities.",
        samples=n_samples,
    )


LEAST_SHARE = 0.99


@dataclass(frozen=True)
class LabelDifference:
    """How the model's label output differs from the predicted class on the rows of its trial.

    Attributes
    ----------
    name : str
        The output.
    samples : int
    differing : float
        Share of the rows that differ.
    label_share, predicted_share : float or None
        Of two classes: shares of the rows whose label, and whose predicted class, is 1.
    threshold : float or None
        Of two classes: a decision threshold that gives all labels, if there is one.
    """

    name: str
    samples: int
    differing: float
    label_share: float | None = None
    predicted_share: float | None = None
    threshold: float | None = None

    def finding(self) -> Finding:
        """Return the notice."""
        told = "The model's label output {words} names another class than its scores"
        remedy = "Predictions follow the scores."
        if self.label_share is not None:
            told = "The model's label output {words} says class 1 in {label_share:percent}"
            told += " and predictions say it in {predicted_share:percent}; they differ"
            remedy = "No one threshold of the model's probability gives these labels."
        if self.threshold is not None:
            remedy = "With `decision_threshold` {threshold:g}, predictions are these labels."
        figures = {name: value for name, value in vars(self).items() if value is not None}
        return finding(
            "label-output-differs",
            "notice",
            f"{told} in {{differing:percent}} of {{samples:,}} rows. {remedy}",
            words=figures.pop("name"),
            **figures,
        )


def not_probabilities(evidence: RecordedSet) -> Finding | None:
    """Find probabilities of exactly 1 and 0 in nearly every sample: these are predictions.

    Even a very confident softmax in float32 leaves about 1e-10 to the other classes. In one sample
    of 100 a class may round to 1, but not in 99 of 100. Predictions that are always right give no
    finding, because nothing is wrong.
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
        "for all others, and {accuracy:percent} of all are right: these are predictions, not "
        "probabilities. Send the model's output before its argmax.",
        certain=certain,
        samples=n,
        accuracy=evidence.accuracy,
    )
