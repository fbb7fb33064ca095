"""Charts of sets that were changed more and more: boxes by intensity, and the promise."""

import statistics
from collections.abc import Mapping, Sequence

from howsure.pictures.elements import Point
from howsure.pictures.palette import Ink
from howsure.pictures.picture import WIDTH, Picture
from howsure.pictures.scales import Names, Scale, percent, plain_number, round_above

INKS: tuple[Ink, ...] = ("grey", "orange", "green", "blue")
_TAKEN = 0.8  # of the width of an intensity


def boxes(
    columns: Sequence[str],
    methods: Mapping[str, Sequence[Sequence[float]]],
    title: str,
    *,
    is_share: bool,
    width: float = WIDTH,
) -> Picture:
    """Draw the values of each method at each intensity: range, quartiles and median.

    ``methods`` has the values of each column; at most four methods, the last one in blue.
    """
    values = [value for by_column in methods.values() for cell in by_column for value in cell]
    write = percent if is_share else plain_number
    picture = Picture(
        Names(columns, "intensity of the change"),
        Scale(0.0, round_above(1.05 * max(values, default=1.0) or 1.0), title, write),
        height=170 if width == WIDTH else 220,
        width=width,
    )
    inks = INKS[len(INKS) - len(methods) :]
    step = _TAKEN / max(len(methods), 1)
    for place, (name, by_column) in enumerate(methods.items()):
        shift = (place + 0.5) * step - _TAKEN / 2
        for column, cell in enumerate(by_column):
            _box(picture, column + shift, 0.32 * step, cell, inks[place])
        picture.legend(name, "square", inks[place])
    return picture


def _box(picture: Picture, at: float, half: float, cell: Sequence[float], ink: Ink) -> None:
    if len(cell) == 1:
        picture.points([(at, cell[0])], ink, size=3)
    if len(cell) <= 1:
        return
    lower, median, upper = statistics.quantiles(cell, n=4, method="inclusive")
    picture.line([(at, min(cell)), (at, max(cell))], ink, width=1.2)
    picture.bar((at - half, lower), (at + half, upper), ink, opacity=0.45, is_background=True)
    picture.line([(at - half, median), (at + half, median)], "ink", width=1.8)


def promise(
    accepted: Sequence[Point], wrong: Sequence[Point], broken: Sequence[Point], ends: Point
) -> Picture:
    """Draw the share accepted, and what of it is wrong, by intensity; broken promises in red.

    ``ends`` are the largest intensity and the promised error rate.
    """
    most, promised = ends
    picture = Picture(
        Scale(0.0, max(most, 1e-9), "intensity of the change", plain_number),
        Scale(0.0, 1.0, "share", percent),
        height=150,
    )
    picture.area([(x, 0.0) for x, _ in accepted], accepted, "grey")
    picture.line([(0.0, promised), (most, promised)], "red", width=1.2, dash="5 4")
    picture.line(wrong, "blue")
    picture.points([point for point in wrong if point not in broken], "blue", size=3.5)
    picture.points(broken, "red", shape="square", size=3.5)
    picture.label("accepted", accepted, "muted")
    picture.label("wrong among accepted", wrong[::-1], "blue")
    return picture
