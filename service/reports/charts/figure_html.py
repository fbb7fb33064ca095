"""Figures of a report as HTML."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from howsure.figures.figure import Figure
from service.printable import escaped_text

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent.parent / "templates"),
    autoescape=True,
    finalize=escaped_text,
    trim_blocks=True,
)


def figure_html(figure: Figure, address: str | None = None) -> Markup:
    """Return a figure with title, note, picture and numbers.

    ``address`` is the base URL of the figures as files, with its query; None in a saved report.
    """
    if address is not None:
        base, mark, query = address.partition("?")
        address = f"{base}/{figure.chart}/{figure.key}.svg{mark}{query}"
    rows = list(figure.table.cells())
    columns = [
        (column, all(isinstance(row[at].value, str) for row in rows))
        for at, column in enumerate(figure.table.columns)
    ]
    macros: Any = _TEMPLATES.get_template("figure.html").module
    html: Markup = macros.figure_html(figure, address, columns, rows)
    return html
