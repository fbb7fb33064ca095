"""CSV files of reports and samples; spreadsheets do not run their cells as formulas."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from howsure.printable import escaped
from howsure.report.located import pointer
from howsure.report.measure import Scored
from howsure.report.plain_parts import plain_part
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


# Curves, what has a file of its own, and what has a number for each class.
OMITTED = {"bins", "curves", "reliability", "rank_grid", "candidates", "by_confidence"}
OMITTED |= {"class_effects", "class_counts"}


def report_csv(report: Report) -> str:
    """Return one number per line; for an evaluation set ``mean`` is the score itself.

    A number that is no score has its path in the JSON in place of a name, and no phase.
    """
    return csv_text(SCORE_COLUMNS, _rows(report))


def _rows(report: Report) -> Iterator[list[Any]]:
    for head, part in _parts(report):
        if isinstance(part, Scored):
            for name, fold in part.scores.items():
                numbers = [fold.mean, fold.std, fold.folds, fold.pooled]
                yield [*head, "cross_validation", name, *numbers]
            for name, value in (part.evaluation or {}).items():
                yield [*head, "evaluation", name, value, None, None, None]
        plain = plain_part(part)
        if isinstance(part, Scored):
            del plain["scores"], plain["evaluation"]
        for path, number in _numbers(plain):
            yield [*head, None, pointer(*path)[1:], number, None, None, None]


def _parts(report: Report) -> Iterator[tuple[list[Any], object]]:
    """Yield the parts of a report with event, kind, name, and whether it is served."""
    for k, event in report.events.items():
        methods: dict[str, Mapping[str, Scored]]
        methods = {"measure": event.measures, "baseline": event.baselines}
        methods["oracle"] = {} if event.oracle is None else {"loss": event.oracle}
        for kind, of_kind in methods.items():
            for subject, method in of_kind.items():
                yield [k, kind, subject, subject == event.served], method
        for row in event.comparison:
            costs = {"passes": row.passes, "ms_per_row": row.ms_per_row}
            yield [k, "measure", row.measure, row.served], costs
        yield [k, "figures", None, None], event.figures
    for name, scores in report.model_scores.items():
        yield [None, "model", name, None], scores
    for one in report.evaluations:
        for k, further in one.events.items():
            yield [k, "further_set", one.name, None], further


def _numbers(plain: object, *path: object) -> Iterator[tuple[tuple[object, ...], float]]:
    """Yield the path of each number of plain data, and the number; none is null."""
    if isinstance(plain, int | float) and not isinstance(plain, bool):
        yield path, plain
    elif isinstance(plain, dict | list):
        for name, part in plain.items() if isinstance(plain, dict) else enumerate(plain):
            if name not in OMITTED:
                yield from _numbers(part, *path, name)
