"""Errors among the accepted answers of a calibration set: which label was taken for which class."""

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from howsure.shares import percent_with_interval
from howsure.statistics.errors_by_class import ClassErrors
from howsure.statistics.plain import to_plain
from howsure.statistics.records.records import Records
from service.errors import ArtifactDamaged
from service.reports import numbers
from service.reports.charts import text
from service.reports.error_samples import record_parts
from service.reports.operating_points import labelled_samples
from service.reports.report import collect_report
from service.reports.summary import active_point
from service.runner.messages.dataset import PAIRS
from service.storage.fit_results import read_fitted
from service.storage.operating_points import FIRST
from service.workspace import CountedErrors, Workspace

MOST_CLASSES = 12
MOST_PAIRS = 20
TOP_1 = 1


# Counts of accepted answers by label and predicted class.
Confusion: TypeAlias = Counter[tuple[int, int]]


def count_confusion(parts: Iterable[Records], column: str, threshold: float | None) -> Confusion:
    """Count the answers with an uncertainty of at most ``threshold``; all answers for None."""
    confusion: Confusion = Counter()
    for records in parts:
        uncertainty = records.uncertainty[column]
        accepted = slice(None) if threshold is None else uncertainty <= np.float32(threshold)
        label, predicted = records.label[accepted], records.top_classes[accepted, 0]
        # One number for each pair: to sort rows would stop all other threads.
        pairs, counts = np.unique(label.astype(np.int64) << 32 | predicted, return_counts=True)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            confusion[pair >> 32, pair & 0xFFFFFFFF] += count
    return confusion


def confusion_matrix(confusion: Confusion, n_classes: int) -> dict[str, Any]:
    """Return the counts as plain data.

    ``classes`` are all classes, or the 12 with the most errors. Then ``counts`` has one more row
    and column, for the other classes. Rows are labels, columns are predicted classes. ``pairs`` are
    the most frequent errors.
    """
    errors = Counter({pair: count for pair, count in confusion.items() if pair[0] != pair[1]})
    shown = _classes(errors, n_classes)
    place = {index: at for at, index in enumerate(shown)}
    size = len(shown) + (len(shown) < n_classes)
    counts = np.zeros((size, size), dtype=np.int64)
    for (label, predicted), count in confusion.items():
        counts[place.get(label, len(shown)), place.get(predicted, len(shown))] += count
    return {
        "n_accepted": confusion.total(),
        "n_errors": errors.total(),
        "classes": shown,
        "counts": counts.tolist(),
        "pairs": [
            {"label": label, "predicted": predicted, "count": count}
            for (label, predicted), count in _ranked(errors)[:MOST_PAIRS]
        ],
    }


def _classes(errors: Confusion, n_classes: int) -> list[int]:
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


def collect_full_report(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str
) -> dict[str, Any]:
    """Return `collect_report` with ``confusion`` of Top-1, which reads the records.

    It is null if the calibration keeps no readable records, has no Top-1 event, or has no classes.
    The summary says which class is wrong, or missed, far more often than promised.

    Raises
    ------
    NotFound, Conflict
        As `collect_report`.
    """
    report = collect_report(workspace, tenant_id, reference)
    for event in report["events"].values():
        event["confusion"] = None
    counted = _count(workspace, tenant_id, report)
    if counted is None:
        return report
    report["events"][FIRST]["confusion"], certain = counted
    summary = report["summary"]
    if summary["status"] in ("fit", "shifted"):
        summary["sentences"][1:1] = _worst_classes(report, certain)
    return report


# A class is told if this multiple of the promised rate is below its interval, as of all classes.
FAR_ABOVE, LEVEL = 2.0, 0.95
KINDS = {
    "named": "{} of {} accepted answers “{}” are wrong",
    "labelled": "{} of {} accepted samples of “{}” are missed",
}


def _worst_classes(report: Mapping[str, Any], certain: Sequence[ClassErrors]) -> Iterator[str]:
    """Yield which class is far more often wrong than promised: as an answer, and as a label.

    The intervals of ``certain`` hold for all classes together.
    """
    found = report["events"][FIRST]["confusion"]
    if not found["max_risk"] or not certain:
        return
    names = report["provenance"]["config"]["classes"]
    weighted = "weight" in report["provenance"]["data"].get("design", ())
    said = []
    for kind, words in KINDS.items():
        ends = [(getattr(one, kind).interval or (0.0,))[0] for one in certain]
        if max(ends) <= FAR_ABOVE * found["max_risk"]:
            continue
        shown = found["by_class"][ends.index(max(ends))]
        share = shown[kind]
        rate = percent_with_interval(share["share"], share["interval"], weighted=weighted)
        counts = (numbers.count(share[name]) for name in ("n_errors", "n_samples"))
        said.append(f"{words.format(*counts, text.name(names[shown['index']]))}, {rate}")
    if said:
        yield (
            "The error rate is that of all accepted answers together. On the calibration set, "
            f"{', and '.join(said)}."
        )


def _count(
    workspace: Workspace, tenant_id: uuid.UUID, report: Mapping[str, Any]
) -> CountedErrors | None:
    """Return the counts at the active operating point, else at the first tested threshold.

    Of all answers without either. ``max_risk`` is the promised error rate, if there is one, and
    ``operating_point`` the name of the operating point. Beside them are the errors by class, with
    intervals that hold for all classes together.
    """
    data = report["provenance"]["data"]
    event = report["events"].get(FIRST)
    if event is None or "imported" in data or data.get("kind") == PAIRS:
        return None
    calibration_id = uuid.UUID(report["calibration"]["id"])
    rule, point = event["figures"]["risk"] or {}, active_point(report, FIRST)
    if point is not None:
        rule = {"threshold": point["threshold"], "max_risk": point["chosen_by"].get("max_risk")}
    threshold = rule.get("threshold")

    def counted() -> CountedErrors:
        with workspace.database.reading(tenant_id) as session:
            fitted = read_fitted(session, tenant_id, str(calibration_id))
        row = fitted.row
        column = next(table.column for table in fitted.served if table.k == TOP_1)
        confusion = count_confusion(record_parts(workspace.artifacts, row), column, threshold)
        n_classes, level = len(row.config["classes"]), row.config["interval"]["level"]
        samples = labelled_samples(workspace, row, column)
        most = np.inf if threshold is None else threshold
        by_class = to_plain(samples.errors_by_class(most, level))
        certain = samples.errors_by_class(most, 1.0 - (1.0 - LEVEL) / n_classes)
        return confusion_matrix(confusion, n_classes) | {"by_class": by_class}, certain

    try:
        counts, certain = workspace.confusions.get_or_load((calibration_id, threshold), counted)
    except ArtifactDamaged:
        return None  # the rest of the report needs no records
    confusion = {
        "threshold": threshold,
        "max_risk": rule.get("max_risk"),
        "operating_point": None if point is None else point["name"],
        **counts,
    }
    return confusion, certain
