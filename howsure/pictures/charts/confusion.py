"""The chart of errors by label and predicted class."""

import math
from collections.abc import Sequence

from howsure.pictures.lettering import text_width
from howsure.pictures.picture import Picture
from howsure.pictures.scales import Names

_ROW = 23.0
_UNITS = ((1, ""), (1_000, "k"), (1_000_000, "M"), (1_000_000_000, "G"))


def confusion(names: Sequence[str], counts: Sequence[Sequence[int]]) -> Picture:
    """Draw a matrix of counts, labels in rows; errors are tinted by their number."""
    picture = Picture(
        Names(names, "predicted class"), Names(names, "label"), height=_ROW * len(names)
    )
    width = (picture.axes.right - picture.axes.left) / max(len(names), 1)
    wrong = [count for row, line in enumerate(counts) for at, count in enumerate(line) if at != row]
    most = max(wrong, default=0)
    for row, line in enumerate(counts):
        for column, count in enumerate(line):
            is_error = row != column
            if is_error and not count:
                continue
            tint = 0.08 + 0.4 * math.sqrt(count / most) if is_error else 0.2
            picture.cell(
                (column - 0.5, column + 0.5),
                (row - 0.5, row + 0.5),
                "orange" if is_error else "grey",
                opacity=tint,
            )
            picture.text(_short_count(count, width), (column, row), width=width)
    return picture


def _short_count(count: int, width: float) -> str:
    """Return a count, in thousands, millions or billions if it would not fit."""
    units = [(size, unit) for size, unit in _UNITS if size <= max(count, 1)]
    texts = [f"{count / size:,.0f}{unit}" for size, unit in units]
    return next((text for text in texts if text_width(text) <= width), texts[-1])
