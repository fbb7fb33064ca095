"""The chart of differences from a reference, each with the margin of chance."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from howsure.pictures.elements import Shape
from howsure.pictures.lettering import fit_text, text_width
from howsure.pictures.palette import Ink
from howsure.pictures.picture import Picture
from howsure.pictures.scales import Names, Scale

_ROW = 36.0
_GAP = 12.0


class Difference(NamedTuple):
    """A mean difference, what chance alone may make of it, and the verdict in a word or two."""

    name: str
    mean: float
    margin: float
    verdict: str


def differences(
    rows: Sequence[Difference], looks: Mapping[str, tuple[Shape, Ink]], title: str
) -> Picture:
    """Draw a row for each difference: name and verdict above, mean and margin on the axis.

    ``looks`` has the shape and the colour of each verdict.
    """
    ends = [row.mean + side * row.margin for row in rows for side in (-1, 1)]
    least, most = min([*ends, 0.0]), max([*ends, 0.0])
    room = 0.05 * (most - least) or 1.0
    picture = Picture(
        Scale(least - room, most + room, title), Names([""] * len(rows)), height=_ROW * len(rows)
    )
    left, right = least - room, most + room
    for place, row in enumerate(rows):
        shape, ink = looks[row.verdict]
        free = picture.axes.right - picture.axes.left - text_width(row.verdict) - _GAP
        picture.text(fit_text(row.name, free), (left, place), anchor="start", down=-5.0)
        picture.text(row.verdict, (right, place), "muted", anchor="end", down=-5.0)
        middle = place + 0.22
        picture.line([(0.0, middle - 0.2), (0.0, middle + 0.2)], "muted", width=1.5)
        picture.line([(row.mean - row.margin, middle), (row.mean + row.margin, middle)], ink)
        picture.points([(row.mean, middle)], ink, shape=shape)
    return picture
