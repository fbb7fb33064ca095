"""Errors among the accepted answers of a set: which label was taken for which class."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace

from howsure import numbers
from howsure.report.event import Confusion, ErrorPair
from howsure.report.parts import FIRST
from howsure.report.report import Report
from howsure.report.words import text
from howsure.report.words.summary import active_point
from howsure.shares import percent_with_interval
from howsure.statistics.errors_by_class import ClassErrors, ClassShare, LabelledSamples
from howsure.statistics.records.records import Records

MOST_CLASSES = 12
MOST_PAIRS = 20
# Counts of accepted answers by label and predicted class.
Counted: TypeAlias = Counter[tuple[int, int]]


class AcceptanceRule(NamedTuple):
    """Which answers of Top-1 are accepted: all of them without a threshold."""

    threshold: float | None = None
    max_risk: float | None = None
    operating_point: str | None = None

    @classmethod
    def of(cls, report: Report) -> "AcceptanceRule":
        """Return the active operating point, or else the first tested threshold."""
        point = active_point(report, FIRST)
        if point is not None:
            return cls(point.threshold, point.chosen_by.get("max_risk"), point.name)
        risk = report.events[FIRST].figures.risk
        return cls() if risk is None else cls(risk.threshold, risk.max_risk)


class CountedErrors(NamedTuple):
    """The counts of a confusion, and the errors by class.

    The intervals of ``certain`` hold for all classes together.
    """

    matrix: Mapping[str, Any]
    by_class: Sequence[ClassErrors]
    certain: Sequence[ClassErrors]


def count_errors(
    parts: Iterable[Records],
    samples: LabelledSamples,
    column: str,
    threshold: float | None,
    *,
    n_classes: int,
    level: float,
) -> CountedErrors:
    """Count the answers with an uncertainty of at most ``threshold``; all answers for None.

    Parameters
    ----------
    parts : iterable of Records
        The set.
    samples : LabelledSamples
        The same samples.
    column : str
        The uncertainty that serves Top-1.
    threshold : float or None
    n_classes : int
    level : float
        The level of the interval of each class, such as 0.95.
    """
    most = np.inf if threshold is None else threshold
    return CountedErrors(
        confusion_matrix(count_confusion(parts, column, threshold), n_classes),
        samples.errors_by_class(most, level),
        samples.errors_by_class(most, 1.0 - (1.0 - LEVEL) / n_classes),
    )


def count_confusion(parts: Iterable[Records], column: str, threshold: float | None) -> Counted:
    """Count the answers with an uncertainty of at most ``threshold``; all answers for None."""
    confusion: Counted = Counter()
    for records in parts:
        uncertainty = records.uncertainty[column]
        accepted = slice(None) if threshold is None else uncertainty <= np.float32(threshold)
        label, predicted = records.label[accepted], records.top_classes[accepted, 0]
        # One number for each pair: to sort rows would stop all other threads.
        pairs, counts = np.unique(label.astype(np.int64) << 32 | predicted, return_counts=True)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            confusion[pair >> 32, pair & 0xFFFFFFFF] += count
    return confusion


def confusion_matrix(confusion: Counted, n_classes: int) -> dict[str, Any]:
    """Return the parts of a `Confusion` that are counts.

    ``classes`` are all classes, or the 12 with the most errors. Then ``counts`` has one more row
    and column, for the other classes. Rows are labels, columns are predicted classes. ``pairs`` are
    the most frequent errors.
    """
    errors = Counter({pair: count for pair, count in confusion.items() if pair[0] != pair[1]})
    listed = _classes(errors, n_classes)
    place = {index: at for at, index in enumerate(listed)}
    size = len(listed) + (len(listed) < n_classes)
    counts = np.zeros((size, size), dtype=np.int64)
    for (label, predicted), count in confusion.items():
        counts[place.get(label, len(listed)), place.get(predicted, len(listed))] += count
    return {
        "n_accepted": confusion.total(),
        "n_errors": errors.total(),
        "classes": listed,
        "counts": counts.tolist(),
        "pairs": [
            ErrorPair(label=label, predicted=predicted, count=count)
            for (label, predicted), count in _ranked(errors)[:MOST_PAIRS]
        ],
    }


def _classes(errors: Counted, n_classes: int) -> list[int]:
    if n_classes <= MOST_CLASSES:
        return list(range(n_classes))
    of_class: Counter[int] = Counter()
    for pair, count in errors.items():
        for index in pair:
            of_class[index] += count
    return sorted(index for index, _ in _ranked(of_class)[:MOST_CLASSES])


def _ranked(counts: Mapping[Any, int]) -> Sequence[tuple[Any, int]]:
    """Return the items by falling count; ties by key, so that the order does not vary."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


# A class is told if this multiple of the promised rate is below its interval, as of all classes.
FAR_ABOVE, LEVEL = 2.0, 0.95
KINDS = {
    "named": "{} of {} accepted answers “{}” are wrong",
    "labelled": "{} of {} accepted samples of “{}” are missed",
}


def _worst_classes(
    report: Report, confusion: Confusion, certain: Sequence[ClassErrors]
) -> Iterator[str]:
    """Yield which class is far more often wrong than promised: as an answer, and as a label.

    The intervals of ``certain`` hold for all classes together.
    """
    if not confusion.max_risk or not certain:
        return
    names = report.provenance.config["classes"]
    weighted = "weight" in report.provenance.data.get("design", ())
    said = []
    for kind, words in KINDS.items():
        ends = [(getattr(one, kind).interval or (0.0,))[0] for one in certain]
        if max(ends) <= FAR_ABOVE * confusion.max_risk:
            continue
        worst = confusion.by_class[ends.index(max(ends))]
        share: ClassShare = getattr(worst, kind)
        if share.share is None or share.interval is None:
            continue
        rate = percent_with_interval(share.share, share.interval, weighted=weighted)
        counts = (numbers.count(n) for n in (share.n_errors, share.n_samples))
        said.append(f"{words.format(*counts, text.name(names[worst.index]))}, {rate}")
    if said:
        yield (
            "The error rate is that of all accepted answers together. On the calibration set, "
            f"{', and '.join(said)}."
        )


def with_confusion(report: Report, rule: AcceptanceRule, counted: CountedErrors) -> Report:
    """Add the confusion of Top-1, and say which class is far more often wrong than promised."""
    confusion = Confusion(**rule._asdict(), **counted.matrix, by_class=list(counted.by_class))
    event = replace(report.events[FIRST], confusion=confusion)
    summary = report.summary
    if summary is not None and summary.status in ("fit", "shifted"):
        said = list(summary.sentences)
        said[1:1] = _worst_classes(report, confusion, counted.certain)
        summary = replace(summary, sentences=said)
    return replace(report, events={**report.events, FIRST: event}, summary=summary)
