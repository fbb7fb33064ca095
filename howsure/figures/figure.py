"""A figure of a report: a picture, words, and a table of numbers with their JSON pointers."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any, NamedTuple

from howsure.pictures.picture import Picture
from howsure.report.event import Event
from howsure.report.located import Located, path_of, value_of
from howsure.report.measure import Measure
from howsure.report.report import Report

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of the table behind a figure; ``show`` returns the text of a value.

    ``path`` leads to the value in the part of the report that a row is of, such as ``nll.value``.
    """

    heading: str
    show: Callable[[Any], str]
    path: str = ""


class Cell(NamedTuple):
    """A value, its text, and its JSON pointer; None if it is not from the report."""

    text: str
    value: Any
    path: str | None


@dataclass(frozen=True)
class Table:
    """The numbers of a figure, for readers who do not see the picture.

    Attributes
    ----------
    columns : sequence of Column
    rows : sequence of sequence
        A value for each column: `Located` if it is from the report, plain if it is derived.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]

    @classmethod
    def of(cls, columns: Sequence[Column], rows: Iterable[tuple[Row, Located]]) -> "Table":
        """Return the table of parts of a report, each with its derived values by path."""
        return cls(
            columns,
            [
                [
                    derived[one.path]
                    if one.path in derived
                    else reduce(getitem, one.path.split("."), part)
                    for one in columns
                ]
                for derived, part in rows
            ],
        )

    def cells(self) -> Iterator[list[Cell]]:
        """Yield the cells of each row."""
        for row in self.rows:
            yield [_cell(value, column) for value, column in zip(row, self.columns, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One picture of a report.

    Attributes
    ----------
    chart : str
        Name of the chart, in `howsure.figures.charts.CHARTS`.
    key : str
        Which one of the chart's figures: ``1`` for that of Top-1.
    title : str
        The main finding.
    note : str
        A description of the picture, with the number of samples.
    picture : Picture
    table : Table
    wide : Picture, optional
        The same for wide pages, of the figures that decide.
    """

    chart: str
    key: str
    title: str
    note: str
    picture: Picture
    table: Table
    wide: Picture | None = None

    @property
    def name(self) -> str:
        """The name of the figure, unique on a page."""
        return f"{self.chart}-{self.key}"

    def svg(self, *, has_heading: bool = False) -> str:
        """Return the picture, with title and note above it for a file of its own."""
        return self.picture.svg(self.title, self.note, self.name, has_heading=has_heading)

    def wide_svg(self) -> str:
        """Return the picture for wide pages; empty if there is none."""
        return "" if self.wide is None else self.wide.svg(self.title, self.note, f"{self.name}-w")


def _cell(value: Any, column: Column) -> Cell:  # noqa: ANN401 -- any JSON, or located
    if not isinstance(value, Located):
        return Cell(column.show(value), value, None)
    plain = value_of(value)
    return Cell(column.show(plain), plain, path_of(value))


class Served(NamedTuple):
    """An event and its served table; ``at`` is the table with its JSON pointers."""

    k: str
    event: Event
    table: Measure
    at: Located


def served_events(report: Report) -> Iterator[Served]:
    """Yield the events of a report with their served tables."""
    events = Located(report)["events"]
    for k, event in report.events.items():
        measure = event.served
        yield Served(k, event, event.measures[measure], events[k]["measures"][measure])
