"""Errors among the accepted answers of a calibration set: which label was taken for which class."""

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from howsure.statistics.bins.design import joined
from howsure.statistics.bins.intervals import proportion_interval
from howsure.statistics.effective import EffectiveShare, effective_share
from howsure.statistics.plain import percent_with_interval, to_plain
from howsure.statistics.records.records import Records
from service.errors import ArtifactDamaged
from service.reports import numbers
from service.reports.charts import text
from service.reports.error_samples import record_parts
from service.reports.report import collect_report
from service.reports.summary import active_point
from service.runner.messages.dataset import PAIRS
from service.storage.calibrations import CalibrationRepository
from service.storage.fit_results import served_tables
from service.storage.operating_points import FIRST
from service.workspace import Workspace

MOST_CLASSES = 12
MOST_PAIRS = 20
TOP_1 = 1


@dataclass
class Confusion:
    """Counts of accepted answers.

    Attributes
    ----------
    correct : Counter of int
        Correct answers by class.
    errors : Counter of (int, int)
        Wrong answers by label and predicted class.
    """

    correct: Counter[int] = field(default_factory=Counter)
    errors: Counter[tuple[int, int]] = field(default_factory=Counter)


def count_confusion(parts: Iterable[Records], column: str, threshold: float | None) -> Confusion:
    """Count the answers with an uncertainty of at most ``threshold``; all answers for None."""
    found = Confusion()
    for records in parts:
        uncertainty = records.uncertainty[column]
        accepted = slice(None) if threshold is None else uncertainty <= np.float32(threshold)
        pairs = np.column_stack([records.label, records.top_classes[:, 0]])[accepted]
        unique, counts = np.unique(pairs, axis=0, return_counts=True)
        for (label, predicted), count in zip(unique.tolist(), counts.tolist(), strict=True):
            if label == predicted:
                found.correct[label] += count
            else:
                found.errors[label, predicted] += count
    return found


def confusion_matrix(found: Confusion, n_classes: int) -> dict[str, Any]:
    """Return the counts as plain data.

    ``classes`` are all classes, or the 12 with the most errors. Then ``counts`` has one more row
    and column, for the other classes. Rows are labels, columns are predicted classes. ``pairs`` are
    the most frequent errors.
    """
    shown = _classes(found, n_classes)
    place = {index: at for at, index in enumerate(shown)}
    size = len(shown) + (len(shown) < n_classes)
    counts = np.zeros((size, size), dtype=np.int64)
    for (label, predicted), count in found.errors.items():
        counts[place.get(label, len(shown)), place.get(predicted, len(shown))] += count
    for index, count in found.correct.items():
        at = place.get(index, len(shown))
        counts[at, at] += count
    n_errors = found.errors.total()
    return {
        "n_accepted": found.correct.total() + n_errors,
        "n_errors": n_errors,
        "classes": shown,
        "counts": counts.tolist(),
        "pairs": [
            {"label": label, "predicted": predicted, "count": count}
            for (label, predicted), count in _ranked(found.errors)[:MOST_PAIRS]
        ],
    }


def answers_by_class(
    parts: Iterable[Records], column: str, threshold: float | None, classes: Sequence[int]
) -> list[EffectiveShare | None]:
    """Return the share of errors among the accepted answers that name each class.

    None for a class that no accepted answer names. Samples have weights or groups.
    """
    predicted, wrong, designs = [], [], []
    for records in parts:
        uncertainty = records.uncertainty[column]
        accepted = np.full(len(uncertainty), True)
        if threshold is not None:
            accepted = uncertainty <= np.float32(threshold)
        predicted.append(records.top_classes[accepted, 0])
        wrong.append(~records.hits(TOP_1)[accepted])
        if records.design is not None:
            designs.append(records.design.at(accepted))
    named, events, design = np.concatenate(predicted), np.concatenate(wrong), joined(designs)
    return [
        None if design is None else effective_share(events[named == one], design.at(named == one))
        for one in classes
    ]


def _classes(found: Confusion, n_classes: int) -> list[int]:
    if n_classes <= MOST_CLASSES:
        return list(range(n_classes))
    of_class: Counter[int] = Counter()
    for pair, count in found.errors.items():
        for index in pair:
            of_class[index] += count
    return sorted(index for index, _ in _ranked(of_class)[:MOST_CLASSES])


def _ranked(counts: Mapping[Any, int]) -> Sequence[tuple[Any, int]]:
    """Return the items by falling count; ties by key, so that the order does not vary."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def collect_full_report(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str
) -> dict[str, Any]:
    """Return `collect_report` with ``confusion`` of Top-1, which reads the records.

    It is null if the calibration keeps no readable records, has no Top-1 event, or has no classes.
    The summary says which class the accepted answers name wrongly far more often than promised.

    Raises
    ------
    NotFound, Conflict
        As `collect_report`.
    """
    report = collect_report(workspace, tenant_id, reference)
    for k, event in report["events"].items():
        event["confusion"] = _of_event(workspace, tenant_id, report, event) if k == "1" else None
    summary = report["summary"]
    if summary["status"] == "fit" and summary["event"] == "1":
        summary["sentences"][1:1] = _worst_class(report, report["events"]["1"])
    return report


# A class is told if this multiple of the promised rate is below its interval, as of all classes.
FAR_ABOVE, LEVEL = 2.0, 0.95
# The lower end of an interval; the class, its errors, its answers, and the rate in words.
_Rate: TypeAlias = tuple[float, tuple[int, int, int, str] | None]


def _worst_class(report: Mapping[str, Any], event: Mapping[str, Any]) -> Iterator[str]:
    """Yield which class is wrong far more often than promised where it is the accepted answer."""
    found = event["confusion"]
    if found is None or not found["max_risk"]:
        return
    counts = np.array(found["counts"])
    level = 1.0 - (1.0 - LEVEL) / len(found["classes"])
    worst: _Rate = (FAR_ABOVE * found["max_risk"], None)
    for place, index in enumerate(found["classes"]):
        n_answers = int(counts[:, place].sum())
        n_errors = n_answers - int(counts[place, place])
        if n_errors:
            known = found["effective"][place] if found["effective"] else None
            effective = None if known is None else EffectiveShare(**known)
            rate = n_errors / n_answers if effective is None else effective.share
            interval = proportion_interval(n_errors, n_answers, level, effective)
            is_weighted = effective is not None and effective.weighted
            said = percent_with_interval(rate, interval, weighted=is_weighted)
            worst = max(worst, (interval[0], (index, n_errors, n_answers, said)), key=itemgetter(0))
    _, at = worst
    if at is not None:
        index, n_errors, n_answers, rate_said = at
        name = text.name(report["provenance"]["config"]["classes"][index])
        yield (
            "The error rate is that of all accepted answers together: where they name "
            f"“{name}”, {numbers.count(n_errors)} of {numbers.count(n_answers)} are wrong "
            f"on the calibration set, {rate_said}."
        )


def _of_event(
    workspace: Workspace, tenant_id: uuid.UUID, report: Mapping[str, Any], event: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the counts at the active operating point, else at the first tested threshold.

    Of all answers without either. ``max_risk`` is the promised error rate, if there is one, and
    ``operating_point`` the name of the operating point.
    """
    data = report["provenance"]["data"]
    if "imported" in data or data.get("kind") == PAIRS:
        return None
    calibration_id = uuid.UUID(report["calibration"]["id"])
    rule, point = event["figures"]["risk"] or {}, active_point(report, FIRST)
    if point is not None:
        rule = {"threshold": point["threshold"], "max_risk": point["chosen_by"].get("max_risk")}
    threshold = rule.get("threshold")

    def counted() -> dict[str, Any]:
        with workspace.database.reading(tenant_id) as session:
            row = CalibrationRepository(session, tenant_id).get(calibration_id)
            tables = served_tables(session, tenant_id, calibration_id)
        column = next(table.column for table in tables if table.k == TOP_1)
        found = count_confusion(record_parts(workspace.artifacts, row), column, threshold)
        matrix = confusion_matrix(found, len(row.config["classes"]))
        effective = None
        if data.get("design"):
            again = record_parts(workspace.artifacts, row)
            effective = answers_by_class(again, column, threshold, matrix["classes"])
        return matrix | {"effective": to_plain(effective)}

    try:
        counts = workspace.confusions.get_or_load((calibration_id, threshold), counted)
    except ArtifactDamaged:
        return None  # the rest of the report needs no records
    return {
        "threshold": threshold,
        "max_risk": rule.get("max_risk"),
        "operating_point": None if point is None else point["name"],
        **counts,
    }
