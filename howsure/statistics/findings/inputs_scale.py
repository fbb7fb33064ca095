"""Findings about inputs on a different scale than the training data."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from howsure.statistics.arrays import Floats
from howsure.statistics.findings.evidence import Finding, RecordedSet, RescaledTrial, finding
from howsure.statistics.findings.labels import PairedHits
from howsure.statistics.records.records import Records

NOT_SCALED, SCALED_TWICE = "inputs-not-scaled", "inputs-scaled-twice"
BYTE = 255.0
LEVEL = 1e-3
LEAST_GAIN = 0.1
FLOOR = -20.0  # of log-probabilities, so that one sample cannot outweigh the others
LEAST_ROWS = 16


def rescaling_factor(inputs: NDArray[np.generic]) -> float | None:
    """Return the factor for a second trial of inputs that look like pixels.

    ``1 / 255`` for inputs from 0 to 255 with a value above 1.5, 255 for inputs from 0 to 1, and
    None for all others.
    """
    if inputs.size == 0:
        return None
    least, most = float(inputs.min()), float(inputs.max())
    if least < 0.0 or not 0.0 < most <= BYTE:
        return None
    if most <= 1.0:
        return BYTE
    return 1.0 / BYTE if most > 1.5 else None  # noqa: PLR2004 - values between are no pixels


def inputs_not_scaled(evidence: RecordedSet) -> Finding | None:
    """Find inputs from 0 to 255 for a model trained on 0 to 1: see `_clearly_better`."""
    found = evidence.rescaled
    if found is None or found.factor > 1.0 or not _clearly_better(found):
        return None
    return _scale_finding(
        NOT_SCALED,
        found,
        seen="The inputs lie between 0 and 255",
        tried="divided by 255",
        fix="Divide them by 255, here and in every prediction",
    )


def inputs_scaled_twice(evidence: RecordedSet) -> Finding | None:
    """Find inputs from 0 to 1 for a model that divides by 255 itself: see `_clearly_better`."""
    found = evidence.rescaled
    if found is None or found.factor < 1.0 or not _clearly_better(found):
        return None
    return _scale_finding(
        SCALED_TWICE,
        found,
        seen="The inputs lie between 0 and 1",
        tried="multiplied by 255",
        fix="Send them from 0 to 255: the model seems to divide by 255 itself",
    )


def _clearly_better(found: RescaledTrial) -> bool:
    """Return whether the model is clearly better on the rescaled inputs.

    Three conditions must hold. The mean log-probability of the label rises by 0.1 nats, by the
    paired t-test at 0.1 %. It ends 0.1 nats above the negative entropy of the labels, the best
    value for one constant answer. No hits are lost, by the sign test at 5 %. Samples of one class,
    from a sorted set, therefore give no finding: on nearly blank inputs a network names one class
    for all. The predicted classes of networks with rectifiers hardly depend on the scale, so
    accuracy alone would miss most cases. A model on its training scale loses hits or probability on
    any other scale, so false alarms are rarer than the level of the test.
    """
    before, after = _logs(found.as_sent), _logs(found.rescaled)
    n = len(before)
    if n < LEAST_ROWS:
        return False
    gains = after - before
    mean, spread = float(gains.mean()), float(gains.std(ddof=1))
    if mean < LEAST_GAIN or spread == 0.0:
        return False
    if float(after.mean()) <= LEAST_GAIN - _label_entropy(found.as_sent):
        return False
    lost = PairedHits.of(found.rescaled.hits(1), found.as_sent.hits(1))
    if lost.gain > 0 and lost.p_value < 0.05:  # noqa: PLR2004 - the level that is said above
        return False
    return bool(stdtr(n - 1, -mean / (spread / np.sqrt(n))) < LEVEL)


def _label_entropy(records: Records) -> float:
    shares = np.unique_counts(records.label).counts / records.n_samples
    return -float((shares * np.log(shares)).sum())


def _logs(records: Records) -> Floats:
    return np.maximum(records.label_log_probability, FLOOR)


def _scale_finding(code: str, found: RescaledTrial, *, seen: str, tried: str, fix: str) -> Finding:
    sent, rescaled = found.as_sent, found.rescaled
    return finding(
        code,
        "warning",
        f"{seen}; {tried}, {{samples}} samples give a Top-1 accuracy of {{rescaled_accuracy:.1%}} "
        "instead of {accuracy:.1%}, and a mean log-probability of the label of "
        "{rescaled_mean_log_probability:.2f} instead of {mean_log_probability:.2f}. "
        f"{fix}.",
        accuracy=float(sent.hits(1).mean()),
        rescaled_accuracy=float(rescaled.hits(1).mean()),
        mean_log_probability=float(_logs(sent).mean()),
        rescaled_mean_log_probability=float(_logs(rescaled).mean()),
        factor=found.factor,
        samples=sent.n_samples,
    )
