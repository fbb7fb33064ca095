"""CSV files of reports and samples; spreadsheets do not run their cells as formulas."""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from howsure.printable import escaped
from howsure.report.measure import Method
from howsure.report.report import Report

Value = TypeVar("Value")

# First characters of a formula; spreadsheets skip a tab or a return before one.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
QUOTE = "'"
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


def csv_cell(value: Value) -> Value | str:
    """Return a value as a cell: printable, with an apostrophe before what begins like a formula.

    Numbers such as ``-1.5`` stay as they are. Programs that read the file remove one apostrophe
    before a character of `FORMULA`.
    """
    if isinstance(value, str):
        return QUOTE + escaped(value) if value.startswith(FORMULA) else escaped(value)
    return value


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([csv_cell(value) for value in row] for row in rows)
    return text.getvalue()


def report_csv(report: Report) -> str:
    """Return one score per line; for an evaluation set ``mean`` is the score itself."""
    return csv_text(SCORE_COLUMNS, _score_rows(report))


def _score_rows(report: Report) -> Iterable[list[Any]]:
    for k, event in report.events.items():
        methods: dict[str, Mapping[str, Method]]
        methods = {"measure": event.measures, "baseline": event.baselines}
        for kind, of_kind in methods.items():
            for subject, method in of_kind.items():
                head = [k, kind, subject, subject == event.served]
                for name, fold in method.scores.items():
                    numbers = [fold.mean, fold.std, fold.folds, fold.pooled]
                    yield [*head, "cross_validation", name, *numbers]
                for name, value in (method.evaluation or {}).items():
                    yield [*head, "evaluation", name, value, None, None, None]
