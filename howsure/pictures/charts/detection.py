"""Charts of the detection of errors by the uncertainty."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from howsure.pictures.elements import Point
from howsure.pictures.picture import Picture
from howsure.pictures.scales import Scale, percent

_MIDDLE = 0.5


def detection(curve: Sequence[Point], chance: Sequence[Point], x: str, y: str) -> Picture:
    """Draw a curve of shares, both axes from 0 to 1, and what chance alone would give.

    Points that are not finite are undefined: they are not drawn, and the curve has a gap there.
    """
    picture = Picture(Scale(0.0, 1.0, x, percent), Scale(0.0, 1.0, y, percent), height=230)
    picture.line(chance, "grey", width=1.2, dash="5 4")
    points: list[Point] = []
    for part in _defined_parts(curve):
        picture.line(part, "blue")
        if len(part) == 1:
            picture.points(part, "blue", size=2.5)
        points += part
    middle = sorted(points, key=lambda point: abs(point[0] - _MIDDLE))
    picture.label("by the uncertainty", middle, "blue")
    picture.label("chance", [chance[-1], chance[0]], "muted")
    return picture


def _defined_parts(curve: Sequence[Point]) -> Iterator[list[Point]]:
    """Yield the parts of a curve between its undefined points."""
    for is_defined, part in groupby(curve, key=lambda point: all(map(math.isfinite, point))):
        if is_defined:
            yield list(part)
