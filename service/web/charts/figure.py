"""What a chart shows of one report: words, numbers and where they stand in the report."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Report = Mapping[str, Any]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of the table behind a figure.

    Attributes
    ----------
    key : str
        Of the row; ``nll/value`` is the ``value`` of its ``nll``.
    heading : str
    show : callable
        From the value to its text.
    """

    key: str
    heading: str
    show: Callable[[Any], str]


@dataclass(frozen=True)
class Cell:
    """A value, how it is shown, and its JSON pointer in the report; None where it is not of it."""

    text: str
    value: Any
    path: str | None


@dataclass(frozen=True)
class Table:
    """The numbers of a figure: what a reader has who does not see it.

    Attributes
    ----------
    columns : sequence of Column
    rows : sequence of tuple of str and mapping
        The pointer of a row in the report, and the row. Keys that begin with ``_`` are not of the
        report; ``_paths`` has the pointers of those that stand elsewhere.
    """

    columns: Sequence[Column]
    rows: Sequence[tuple[str, Row]]

    def cells(self) -> Iterator[list[Cell]]:
        """Yield the cells of each row."""
        for path, row in self.rows:
            yield [_cell(path, row, column) for column in self.columns]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One picture of a report.

    Attributes
    ----------
    chart : str
        Name of the chart, in `service.web.charts.CHARTS`.
    key : str
        Which one of the chart's figures: ``1`` for that of Top-1.
    title : str
        What it shows, as a finding.
    note : str
        What is drawn, of how many samples.
    data : mapping of str to sequence of mapping
        Rows by the names that the spec has for them.
    table : Table
    parameters : mapping of str to float
        Of the spec; nothing that is read off the picture.
    """

    chart: str
    key: str
    title: str
    note: str
    data: Mapping[str, Sequence[Row]]
    table: Table
    parameters: Mapping[str, float] = field(default_factory=dict)


def _cell(path: str, row: Row, column: Column) -> Cell:
    value: Any = row
    for part in column.key.split("/"):
        value = None if value is None else value.get(part)
    where = None if value is None else _pointer(path, row, column.key)
    return Cell(column.show(value), value, where)


def _pointer(path: str, row: Row, key: str) -> str | None:
    if key.startswith("_"):
        return None
    where: str = row.get("_paths", {}).get(key, f"{path}/{key}")
    return where


def pointer(*parts: object) -> str:
    """Return the JSON pointer of a place in the report: RFC 6901."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)
