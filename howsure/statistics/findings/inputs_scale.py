"""Findings about inputs that are scaled or normalised in another way than the training data."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from howsure.statistics.arrays import Floats
from howsure.statistics.findings.evidence import (
    Figure,
    Finding,
    Preparation,
    RecordedSet,
    RescaledTrial,
    Rescaling,
    finding,
)
from howsure.statistics.findings.labels import PairedHits
from howsure.statistics.records.records import Records

NOT_SCALED, SCALED_TWICE = "inputs-not-scaled", "inputs-scaled-twice"
BYTE = 255.0
LEVEL = 1e-3
LEAST_GAIN = 0.1
FLOOR = -20.0  # of log-probabilities, so that one sample cannot outweigh the others
LEAST_ROWS = 16
PICTURE_AXES = 4
LEAST_BYTE = 1.5  # inputs from 0 to 255 exceed it, those from 0 to 1 do not reach it
COLOURS = 3

# Applied to values from 0 to 1.
NORMALISATIONS = (
    Rescaling("ImageNet's", 1.0, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    Rescaling("the", 1.0, (0.5,) * COLOURS, (0.5,) * COLOURS),
)


def rescalings(inputs: NDArray[np.generic]) -> tuple[Rescaling, ...]:
    """Return other scales to try for inputs that look like pixels.

    Inputs from 0 to 255 with a value above 1.5 are tried times ``1 / 255``, and inputs from 0 to 1
    times 255. Pictures with three channels are tried with the common normalisations, too. For any
    other inputs there is nothing to try.
    """
    if inputs.size == 0:
        return ()
    least, most = float(inputs.min()), float(inputs.max())
    if least < 0.0 or not 0.0 < most <= BYTE:
        return ()
    if 1.0 < most <= LEAST_BYTE:
        return ()
    unit = 1.0 if most <= 1.0 else 1.0 / BYTE
    plain = Rescaling("", BYTE if most <= 1.0 else unit)
    axis = channel_axis(inputs.shape, channels=[COLOURS])
    if axis is None:
        return (plain,)
    return (plain, *(replace(found, factor=unit, axis=axis) for found in NORMALISATIONS))


def channel_axis(shape: Sequence[int], *, channels: Collection[int]) -> int | None:
    """Return the axis of pictures that has one of these numbers of channels, or None."""
    if len(shape) != PICTURE_AXES:
        return None
    return next((axis for axis in (1, 3) if shape[axis] in channels), None)


def inputs_not_scaled(evidence: RecordedSet) -> Finding | None:
    """Find inputs that the model wants divided by 255, or normalised: see `_clearly_better`."""
    return _scale_finding(evidence, NOT_SCALED)


def inputs_scaled_twice(evidence: RecordedSet) -> Finding | None:
    """Find inputs from 0 to 1 for a model that divides by 255 itself: see `_clearly_better`."""
    return _scale_finding(evidence, SCALED_TWICE)


def best_trial(trial: RescaledTrial) -> tuple[Rescaling | Preparation, Records] | None:
    """Return the inputs with the best answers of those that are clearly better than as sent.

    One that changes two things must be 0.1 nats better than one that changes a single thing: grey
    pictures give the same answers in both orders of channels.
    """
    level = LEVEL / max(trial.n_tried, len(trial.tried))
    better = [
        (how, rescaled)
        for how, rescaled in trial.tried
        if _clearly_better(trial.as_sent, rescaled, level=level, more_hits=how.needs_hits)
    ]
    return max(better, key=lambda found: merit(*found), default=None)


def merit(how: Rescaling | Preparation, records: Records) -> float:
    """Return by what preparations are ranked: the log-probability, less 0.1 per further change."""
    return mean_log_probability(records) - LEAST_GAIN * (how.changes - 1)


def _clearly_better(as_sent: Records, rescaled: Records, *, level: float, more_hits: bool) -> bool:
    """Return whether the model is clearly better on the rescaled inputs.

    Three conditions must hold. The mean log-probability of the label rises by 0.1 nats, by the
    paired t-test at 0.1 %. It ends 0.1 nats above the negative entropy of the labels, the best
    value for one constant answer. No hits are lost, by the sign test at 5 %. Samples of one class,
    from a sorted set, therefore give no finding: on nearly blank inputs a network names one class
    for all. The predicted classes of networks with rectifiers hardly depend on the scale, so
    accuracy alone would miss most cases. A model on its training scale loses hits or probability on
    any other scale, so false alarms are rarer than the level of the test.

    Other preparations move the inputs as well, and changes of contrast alone can make a model less
    sure. They must therefore also win hits (``more_hits``), by the sign test at 0.1 %. Both levels
    are divided by the number of preparations that are tried.
    """
    before, after = _logs(as_sent), _logs(rescaled)
    n = len(before)
    if n < LEAST_ROWS:
        return False
    gains = after - before
    mean, spread = float(gains.mean()), float(gains.std(ddof=1))
    if mean < LEAST_GAIN or spread == 0.0:
        return False
    if float(after.mean()) <= LEAST_GAIN - _label_entropy(as_sent):
        return False
    if more_hits:
        won = PairedHits.of(as_sent.hits(1), rescaled.hits(1))
        if won.gain <= 0 or won.p_value > level:
            return False
    lost = PairedHits.of(rescaled.hits(1), as_sent.hits(1))
    if lost.gain > 0 and lost.p_value < 0.05:  # noqa: PLR2004 - the level that is said above
        return False
    return bool(stdtr(n - 1, -mean / (spread / np.sqrt(n))) < level)


def _label_entropy(records: Records) -> float:
    shares = np.unique_counts(records.label).counts / records.n_samples
    return -float((shares * np.log(shares)).sum())


def mean_log_probability(records: Records) -> float:
    """Return the mean log-probability of the label, each at least `FLOOR`."""
    return float(_logs(records).mean())


def _logs(records: Records) -> Floats:
    return np.maximum(records.label_log_probability, FLOOR)


def _scale_finding(evidence: RecordedSet, code: str) -> Finding | None:
    """Return the finding about the best scale, if it has this code."""
    trial = evidence.rescaled
    best = None if trial is None else best_trial(trial)
    if trial is None or best is None:
        return None
    how, rescaled = best
    if not isinstance(how, Rescaling) or how.code != code:
        return None
    channels: dict[str, Figure] = {}
    if how.mean:
        channels = {"mean": [*how.mean], "std": [*how.std], "axis": how.axis}
    return finding(
        code,
        "warning",
        "The inputs lie between 0 and {words}, {samples} samples give a Top-1 accuracy of "
        "{rescaled_accuracy:percent} instead of {accuracy:percent}, and a mean log-probability of "
        "the label of {rescaled_mean_log_probability:.2f} instead of {mean_log_probability:.2f}. "
        f"{_fix(how)}.",
        words=f"{255 if how.factor < 1.0 else 1}; {_steps(how)}",
        accuracy=float(trial.as_sent.hits(1).mean()),
        rescaled_accuracy=float(rescaled.hits(1).mean()),
        mean_log_probability=mean_log_probability(trial.as_sent),
        rescaled_mean_log_probability=mean_log_probability(rescaled),
        factor=how.factor,
        samples=trial.as_sent.n_samples,
        **channels,
    )


def _steps(how: Rescaling) -> str:
    """Return what was done to the inputs: ``divided by 255 and normalised with the mean …``."""
    steps = []
    if how.factor != 1.0:
        steps.append("multiplied by 255" if how.factor > 1.0 else "divided by 255")
    if how.mean:
        values = f"mean {[*how.mean]} and standard deviation {[*how.std]}"
        steps.append(f"normalised with {how.owner} {values}")
    return " and ".join(steps)


def _fix(how: Rescaling) -> str:
    if how.factor > 1.0:
        return "Send them from 0 to 255: the model seems to divide by 255 itself"
    done = "Normalise them like this" if how.mean else "Divide them by 255"
    return f"{done}, here and in every prediction"
