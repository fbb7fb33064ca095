"""Figures as HTML: the picture, and a table of its numbers that opens below it."""

import json

from markupsafe import Markup

from service.web.charts.figure import Cell, Figure

_FIGURE = Markup(
    '<figure class="chart" id="{id}" data-chart="{chart}" data-key="{key}"{spec}>{picture}'
    "<details><summary>The numbers</summary>{file}"
    '<div class="wide" tabindex="0" role="region" aria-label="{title}">'
    "<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></details></figure>"
)
_SPEC = Markup(' data-spec="{}.json"')
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
        spec=Markup() if place is None else _SPEC.format(place),
        file=Markup() if place is None else _FILE.format(place),
        picture=_WORDS.format(figure.title, figure.note) if picture is None else Markup(picture),  # noqa: S704 -- what Vega drew, its texts escaped
        head=Markup().join(
            _HEADING.format(Markup() if is_name else _RIGHT, column.heading)
            for column, is_name in zip(figure.table.columns, sides, strict=True)
        ),
        body=Markup().join(
            Markup("<tr>{}</tr>").format(Markup().join(map(_cell, row))) for row in rows
        ),
    )


def _cell(cell: Cell) -> Markup:
    if isinstance(cell.value, str):
        return _NAME.format(cell.text)
    if cell.path is None:
        return _DERIVED.format(cell.text)
    return _NUMBER.format(cell.path, json.dumps(cell.value), cell.text)
