"""The report as CSV: one flat table."""

import csv
import io
from collections.abc import Iterable
from typing import Any

SCORE_COLUMNS = (
    "event",
    "subject_kind",
    "subject",
    "served",
    "phase",
    "score",
    "mean",
    "std",
    "folds",
    "pooled",
)


def report_csv(report: dict[str, Any]) -> str:
    """Return every score, one a line; for an evaluation set ``mean`` is the score itself."""
    return _csv(SCORE_COLUMNS, _score_rows(report))


def _score_rows(report: dict[str, Any]) -> Iterable[list[Any]]:
    for k, event in report["events"].items():
        for kind in ("measure", "baseline"):
            for subject, found in event[f"{kind}s"].items():
                head = [k, kind, subject, subject == event["served"]]
                for name, fold in found["scores"].items():
                    numbers = [fold["mean"], fold["std"], fold["folds"], fold["pooled"]]
                    yield [*head, "cross_validation", name, *numbers]
                for name, value in (found["evaluation"] or {}).items():
                    yield [*head, "evaluation", name, value, None, None, None]


def _csv(columns: Iterable[str], rows: Iterable[list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
