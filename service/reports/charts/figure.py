"""A figure of a report: picture data, words, and a table of numbers with their JSON pointers."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from service.reports.located import Located, path_of, value_of

Report = Mapping[str, Any]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of the table behind a figure; ``show`` returns the text of a value."""

    heading: str
    show: Callable[[Any], str]


@dataclass(frozen=True)
class Cell:
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
        Name of the chart, in `service.reports.charts.registry.CHARTS`.
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


def _cell(value: Any, column: Column) -> Cell:  # noqa: ANN401 -- any JSON, or located
    if not isinstance(value, Located):
        return Cell(column.show(value), value, None)
    plain = value_of(value)
    return Cell(column.show(plain), plain, path_of(value))


_FIGURE = Markup(
    '<figure class="chart" id="{id}" data-chart="{chart}" data-key="{key}">{picture}'
    "<details><summary>The numbers</summary>{file}"
    '<div class="wide" tabindex="0" role="region" aria-label="{title}">'
    "<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></details></figure>"
)
_FILE = Markup('<p><a href="{}.svg">This picture as SVG</a></p>')
_WORDS = Markup('<figcaption><strong>{}</strong> <span class="hint">{}</span></figcaption>')
_HEADING = Markup('<th scope="col"{}>{}</th>')
_NAME = Markup("<td><bdi>{}</bdi></td>")
_NUMBER = Markup('<td class="n"><span class="number" data-path="{}" data-value="{}">{}</span></td>')
_DERIVED = Markup('<td class="n">{}</td>')
_RIGHT = Markup(' class="n"')


def figure_html(figure: Figure, picture: str | None, address: str | None = None) -> Markup:
    """Return a figure; without a picture, which could not be drawn, its words and its numbers.

    ``address`` is that of the report's charts, where the figure is also a file; None where there is
    no service to ask, as in a file of its own.
    """
    place = None if address is None else f"{address}/{figure.chart}/{figure.key}"
    rows = list(figure.table.cells())
    sides = [
        all(isinstance(row[at].value, str) for row in rows)
        for at in range(len(figure.table.columns))
    ]
    return _FIGURE.format(
        id=f"{figure.chart}-{figure.key}",
        chart=figure.chart,
        key=figure.key,
        title=figure.title,
        file=Markup() if place is None else _FILE.format(place),
        picture=_WORDS.format(figure.title, figure.note) if picture is None else Markup(picture),  # noqa: S704 -- what Vega drew, its texts escaped
        head=Markup().join(
            _HEADING.format(Markup() if is_name else _RIGHT, column.heading)
            for column, is_name in zip(figure.table.columns, sides, strict=True)
        ),
        body=Markup().join(
            Markup("<tr>{}</tr>").format(Markup().join(map(_cell_html, row))) for row in rows
        ),
    )


def _cell_html(cell: Cell) -> Markup:
    if isinstance(cell.value, str):
        return _NAME.format(cell.text)
    if cell.path is None:
        return _DERIVED.format(cell.text)
    return _NUMBER.format(cell.path, json.dumps(cell.value), cell.text)
