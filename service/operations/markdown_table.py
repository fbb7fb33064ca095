"""Tables and numbers as Markdown."""

import re
from collections.abc import Iterable

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~])")


def table_lines(header: list[str], rows: Iterable[list[str]]) -> list[str]:
    """Return a table, one line a row."""

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    return [line(header), "|" + "---|" * len(header), *(line(row) for row in rows)]


def number(value: float | None) -> str:
    """Return a score to four digits; nothing where there is none."""
    return "" if value is None else f"{value:.4f}"


def edge(value: float | None) -> str:
    """Return an uncertainty or a share to six significant digits; nothing where there is none."""
    return "" if value is None else f"{value:.6g}"


def plain(text: str) -> str:
    """Return a caller's text so that Markdown shows it and reads no markup in it."""
    return _MARKUP.sub(r"\\\1", text)
