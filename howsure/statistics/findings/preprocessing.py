"""Findings about inputs that are prepared in another way than the training data."""

from dataclasses import asdict, replace

import numpy as np
from scipy.special import bdtrc, stdtr

from howsure.statistics.arrays import Floats
from howsure.statistics.compared_inputs import UnlikeRows
from howsure.statistics.findings.evidence import (
    Figure,
    Finding,
    Level,
    Preparation,
    PreparationTrials,
    RecordedSet,
    finding,
)
from howsure.statistics.findings.labels import labels_permuted, labels_shifted
from howsure.statistics.findings.preparations import WRONG_PREPROCESSING
from howsure.statistics.paired_hits import PairedHits
from howsure.statistics.records.records import Records

OTHER_LABELS = "other_labels"
PREPARED = ("prepared", "rescaled")  # in the names of figures
LEVEL = 1e-3
SHARE_NOTICE, SHARE_WARNING = 0.005, 0.05
LEAST_GAIN = 0.1
FLOOR = -20.0  # of log-probabilities, so that one sample cannot outweigh the others
LEAST_ROWS = 16
LOSS_LEVEL = 0.05  # of the test that no hits are lost


def wrong_preparation(evidence: RecordedSet, *, code: str) -> Finding | None:
    """Find inputs that the model wants prepared in another way, if ``code`` reports this way.

    The rule is that of `_clearly_better`. The figure ``other_labels`` is 1 if the
    labels of inputs prepared so still seem to be others, and 0 if not.
    """
    trial = evidence.trials
    best = None if trial is None else _best_trial(trial)
    if trial is None or best is None or best[0].code != code:
        return None
    how, records = best
    prepared = replace(evidence, records=records)
    accuracy, prepared_accuracy = (float(of.hits(1).mean()) for of in (trial.as_sent, records))
    # With labels of other classes, a scale that makes the model less sure is better, and no cure.
    if prepared_accuracy <= accuracy and (labels_shifted(evidence) or labels_permuted(evidence)):
        return None
    kind = PREPARED[code != WRONG_PREPROCESSING]
    figures: dict[str, Figure] = {
        "accuracy": accuracy,
        f"{kind}_accuracy": prepared_accuracy,
        "mean_log_probability": _mean_log_probability(trial.as_sent),
        f"{kind}_mean_log_probability": _mean_log_probability(records),
        "samples": trial.as_sent.n_samples,
        OTHER_LABELS: int(bool(labels_shifted(prepared) or labels_permuted(prepared))),
        **how.figures,
    }
    return finding(
        code,
        "warning",
        "{words}, {samples} samples give a Top-1 accuracy of "
        f"{{{kind}_accuracy:percent}} instead of {{accuracy:percent}}, and a mean log-probability "
        f"of the label of {{{kind}_mean_log_probability:.2f}} instead of "
        f"{{mean_log_probability:.2f}}. {how.advice}",
        words=how.words,
        **figures,
    )


def _best_trial(trial: PreparationTrials) -> tuple[Preparation, Records] | None:
    """Return the preparation with the best answers of those that are clearly better than as sent.

    One that changes two things must be 0.1 nats better than one that changes a single thing: grey
    pictures give the same answers in both orders of channels.
    """
    level = LEVEL / max(trial.n_tried, len(trial.tried))
    better = [
        (how, records)
        for how, records in trial.tried
        if _clearly_better(trial.as_sent, records, level=level, more_hits=how.needs_hits)
    ]
    return max(better, key=lambda found: merit(*found), default=None)


def merit(how: Preparation, records: Records) -> float:
    """Return by what preparations are ranked: the log-probability, less 0.1 per further change."""
    return _mean_log_probability(records) - LEAST_GAIN * (how.changes - 1)


def _clearly_better(as_sent: Records, prepared: Records, *, level: float, more_hits: bool) -> bool:
    """Return whether the model is clearly better on the prepared inputs.

    Three conditions must hold. The mean log-probability of the label rises by 0.1 nats, by the
    paired t-test at 0.1 %. It ends 0.1 nats above the negative entropy of the labels, the best
    value for one constant answer; or more answers are right than of always naming the most frequent
    label, by the binomial test at that level, as of a network that is too sure where labels are
    wrong. No hits are lost, by the sign test at 5 %. Samples of one class,
    from a sorted set, therefore give no finding: on nearly blank inputs a network names one class
    for all. The predicted classes of networks with rectifiers hardly depend on the scale, so
    accuracy alone would miss most cases. A model on its training scale loses hits or probability on
    any other scale, so false alarms are rarer than the level of the test.

    Other preparations move the inputs as well, and changes of contrast alone can make a model less
    sure. They must therefore also win hits (``more_hits``), by the sign test at 0.1 %. Both levels
    are divided by the number of preparations that are tried.
    """
    before, after = _logs(as_sent), _logs(prepared)
    n = len(before)
    if n < LEAST_ROWS:
        return False
    gains = after - before
    mean, spread = float(gains.mean()), float(gains.std(ddof=1))
    if mean < LEAST_GAIN or spread == 0.0:
        return False
    if float(after.mean()) <= LEAST_GAIN - _label_entropy(as_sent) and not (
        _beats_one_class(prepared, level)
    ):
        return False
    if more_hits:
        won = PairedHits.of(as_sent.hits(1), prepared.hits(1))
        if won.gain <= 0 or won.p_value > level:
            return False
    lost = PairedHits.of(prepared.hits(1), as_sent.hits(1))
    if lost.gain > 0 and lost.p_value < LOSS_LEVEL:
        return False
    return bool(stdtr(n - 1, -mean / (spread / np.sqrt(n))) < level)


def _beats_one_class(records: Records, level: float) -> bool:
    n = records.n_samples
    most = float(np.unique_counts(records.label).counts.max() / n)
    n_hits = int(np.count_nonzero(records.hits(1)))
    return most < 1.0 and bool(bdtrc(n_hits - 1, n, most) < level)


def _label_entropy(records: Records) -> float:
    shares = np.unique_counts(records.label).counts / records.n_samples
    return -float((shares * np.log(shares)).sum())


def _mean_log_probability(records: Records) -> float:
    return float(_logs(records).mean())


def _logs(records: Records) -> Floats:
    return np.maximum(records.label_log_probability, FLOOR)


def inputs_out_of_range(evidence: RecordedSet) -> Finding | None:
    """Find samples of the evaluation set on another scale: see `rows_out_of_range`."""
    return rows_out_of_range(evidence.unlike)


IN_WORDS = ("column", "is_middle", "known_missing")  # of unlike rows, which are no figures


def rows_out_of_range(unlike: UnlikeRows | None) -> Finding | None:
    """Find samples of an evaluation or further set on another scale than the calibration set.

    A notice from 0.5 % of the set, a warning from 5 %.
    """
    if unlike is None or unlike.rows < SHARE_NOTICE * unlike.samples:
        return None
    figures = {name: value for name, value in asdict(unlike).items() if name not in IN_WORDS}
    level: Level = "warning" if unlike.rows >= SHARE_WARNING * unlike.samples else "notice"
    if unlike.known_missing is not None:
        return finding(
            "inputs-out-of-range",
            level,
            "{words} is empty in {rows:,} of {samples:,} samples for evaluation; in the "
            "calibration set it "
            + ("is in {missing:percent} of them." if unlike.known_missing else "never is."),
            words=f"Column `{unlike.column}`",
            missing=unlike.known_missing,
            rows=unlike.rows,
            samples=unlike.samples,
        )
    if unlike.is_middle and unlike.least == unlike.most == 0.0:
        return finding(
            "inputs-out-of-range",
            "warning",
            "{words} is 0 in nearly all of {samples:,} samples for evaluation; in the calibration "
            "set most of its numbers are from {known_least:g} to {known_most:g}. They may be "
            "missing.",
            words=f"Column `{unlike.column}`",
            **figures,
        )
    return finding(
        "inputs-out-of-range",
        level,
        "{rows:,} of {samples:,} samples for evaluation are on another scale than the calibration "
        "set{words} from {least:g} to {most:g} instead of {known_least:g} to {known_most:g}.",
        words=(f" in column `{unlike.column}`" if unlike.column else "")
        + (": most numbers are" if unlike.is_middle else ": numbers"),
        **figures,
    )
