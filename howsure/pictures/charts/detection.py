"""Charts of the detection of errors by the uncertainty."""

from collections.abc import Sequence

from howsure.pictures.elements import Point
from howsure.pictures.picture import Picture
from howsure.pictures.scales import Scale, percent

_MIDDLE = 0.5


def detection(curve: Sequence[Point], chance: Sequence[Point], x: str, y: str) -> Picture:
    """Draw a curve of shares, both axes from 0 to 1, and what chance alone would give."""
    picture = Picture(Scale(0.0, 1.0, x, percent), Scale(0.0, 1.0, y, percent), height=230)
    picture.line(chance, "grey", width=1.2, dash="5 4")
    picture.line(curve, "blue")
    if len(curve) == 1:
        picture.points(curve, "blue", size=2.5)
    middle = sorted(curve, key=lambda point: abs(point[0] - _MIDDLE))
    picture.label("by the uncertainty", middle, "blue")
    picture.label("chance", [chance[-1], chance[0]], "muted")
    return picture
