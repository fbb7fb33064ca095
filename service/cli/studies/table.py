"""The table of a study, and its cells from reports."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from rich.table import Table

from howsure.numbers import count, edge
from service.cli.console import add_row, number, table_of
from service.cli.studies.registry import Run, Study

if TYPE_CHECKING:
    from howsure.report.event import Event
    from howsure.report.measure import Measure, Scored
    from howsure.report.report import Report

Format: TypeAlias = Literal["table", "csv", "markdown", "json"]
ORACLE, TOP, EDGE = "loss (oracle)", "Top-", "edge"
TOP_1, SOFTMAX, OF_EVENT = "1", "neg_log_pmax", "neg_log_topk_mass"
OF_THE_TABLE = "eor"  # of the bins themselves, also beside an evaluation set
# Of the methods on changed sets: Ovadia et al., Appendix G.
QUARTILE_SCORES = ("brier", "nll", "ece_15")


@dataclass(frozen=True)
class StudyRow:
    """A row: texts, then a number for each score."""

    texts: tuple[str, ...]
    numbers: tuple[float | None, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """Of a row of a measure: its event and bins, and whether it is the oracle, the last."""
        event, bins, label = self.texts
        return (int(event.removeprefix(TOP)), int(bins), int(label == ORACLE))


@dataclass(frozen=True)
class StudyTable:
    """The table of a study.

    Attributes
    ----------
    title : str
    texts, scores : tuple of str
        Columns of texts, then of numbers.
    rows : list of StudyRow
    omitted : dict of str to list of str
        The rows that are left out, by the reason.
    """

    title: str
    texts: tuple[str, ...]
    scores: tuple[str, ...]
    rows: list[StudyRow]
    omitted: dict[str, list[str]]

    def rich(self) -> Table:
        """Return it for a terminal."""
        table = table_of(self.title, self.texts, self.scores)
        for row in self.rows:
            add_row(table, *row.texts, *self._digits(row))
        return table

    def text(self, output_format: Format) -> str:
        """Return it as CSV or JSON with all digits, or as Markdown."""
        if output_format == "json":
            import msgspec

            return msgspec.json.format(msgspec.json.encode(asdict(self)), indent=2).decode() + "\n"
        if output_format == "csv":
            from service.reports.csv_table import csv_text

            rows = ([*row.texts, *row.numbers] for row in self.rows)
            return csv_text([*self.texts, *self.scores], rows)
        return "\n".join([self.title, "", *self._markdown(), ""])

    def _digits(self, row: StudyRow) -> Iterator[str]:
        """Yield the numbers with four decimals; uncertainties, of any size, with four digits."""
        for name, value in zip(self.scores, row.numbers, strict=True):
            is_edge = name.startswith(EDGE) and value is not None
            yield edge(value) if is_edge else number(value)

    def _markdown(self) -> Iterator[str]:
        from service.reports.markdown import escape

        yield _line([*self.texts, *self.scores])
        yield _line(["---"] * len(self.texts) + ["--:"] * len(self.scores))
        for row in self.rows:
            yield _line([*map(escape, row.texts), *self._digits(row)])
        for reason, labels in self.omitted.items():
            text = escape(f"{'; '.join(labels)}: {' '.join(reason.split())}")
            yield from ("", f"Without {text}.")


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def rows_of_run(study: Study, run: Run, report: "Report", bins: int) -> Iterator[StudyRow]:
    """Yield the rows of a calibration: its measures by event, then bins of the loss."""
    for k in study.events:
        event = report.events.get(k)
        if event is None:
            continue
        # For Top-1 it is the measure neg_log_pmax.
        measures = {
            run.label(name): part
            for name, part in event.measures.items()
            if k != TOP_1 or name != OF_EVENT or SOFTMAX not in event.measures
        }
        oracle = event.oracle if study.oracle and run == study.runs[0] else None
        parts: dict[str, Measure | Scored] = {**measures}
        if oracle is not None:
            parts[ORACLE] = oracle
        for label, part in parts.items():
            numbers = tuple(cell(event, part, name) for name in study.columns)
            yield StudyRow((f"{TOP}{k}", str(bins), label), numbers)


def row_of_model(study: Study, report: "Report", label: str) -> StudyRow:
    """Return the row of a model, by its own softmax."""
    event = report.events[TOP_1]
    numbers = tuple(cell(event, event.measures[SOFTMAX], name) for name in study.columns)
    return StudyRow((label,), numbers)


def rows_of_methods(report: "Report") -> Iterator[StudyRow]:
    """Yield quartiles of each score of each method over the changed sets of a calibration."""
    from howsure.report.stress import Stress, quartiles_over_sets

    quartiles = list(quartiles_over_sets(Stress.of(report)))
    for score in QUARTILE_SCORES:
        for one in (one for one in quartiles if one.score == score):
            texts = (score, one.method, count(one.n_sets))
            yield StudyRow(texts, (one.lower, one.median, one.upper))


def cell(event: "Event", part: "Measure | Scored", name: str) -> float | None:
    """Return a number of a row: on the evaluation set if there is one, else cross-validated.

    Then it is the score of all folds together, or the mean over the folds if only that is defined.
    """
    from howsure.report.measure import Measure

    if name == "accuracy":
        accuracy = event.figures.accuracy
        return None if accuracy is None else accuracy.value
    if name in CELLS:
        return CELLS[name](part) if isinstance(part, Measure) else None
    if part.evaluation is not None and name != OF_THE_TABLE:
        return part.evaluation.get(name)
    score = part.scores.get(name)
    if score is None:
        return None
    return score.mean if score.pooled is None else score.pooled


def _merged(measure: "Measure") -> float | None:
    return None if measure.merged_odds is None else measure.merged_odds.eor


def _coarse(at: int, kind: str) -> Callable[["Measure"], float | None]:
    """Return a function that reads a cell of the coarse table."""

    def read(measure: "Measure") -> float | None:
        if measure.coarse is None:
            return None
        part = measure.coarse.cells[at]
        values = {EDGE: part.upper, "share": part.weight, "right": part.probability}
        return values[kind]

    return read


PLACES = {"1": 0, "2": 1, "rest": -1}
CELLS: Mapping[str, Callable[["Measure"], float | None]] = {
    "merged_eor": _merged,
    **{
        f"{kind}_{place}": _coarse(at, kind)
        for kind in (EDGE, "share", "right")
        for place, at in PLACES.items()
    },
}
