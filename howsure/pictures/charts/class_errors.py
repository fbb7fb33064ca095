"""The chart of errors by class, against the promise for all classes together."""

from collections.abc import Sequence
from typing import NamedTuple

from howsure.pictures.elements import Shape
from howsure.pictures.lettering import fit_text
from howsure.pictures.palette import Ink
from howsure.pictures.picture import Picture
from howsure.pictures.scales import Names, Scale, percent, round_above

_ROW = 34.0
_APART = 0.17
_MOST_OF_NAME = 130.0  # pixels
# Samples of the class that are answered with another one; answers that name it wrongly.
LOOKS: tuple[tuple[str, Shape, float], ...] = (
    ("samples of the class that are missed", "circle", -_APART),
    ("answers with the class that are wrong", "square", _APART),
)


class ErrorShare(NamedTuple):
    """A share of errors and its interval."""

    share: float
    lower: float
    upper: float


def class_errors(
    rows: Sequence[tuple[str, ErrorShare | None, ErrorShare | None]],
    promise: float | None,
    width: float,
) -> Picture:
    """Draw both shares of each class; those whose whole interval is above the promise in orange."""
    ends = [one.upper for _, *shares in rows for one in shares if one is not None]
    most = min(round_above(1.05 * max([*ends, 1.5 * (promise or 0.0)])), 1.0)
    picture = Picture(
        Scale(0.0, most, "", percent),
        Names([fit_text(name, _MOST_OF_NAME) for name, *_ in rows]),
        height=_ROW * len(rows),
        width=width,
    )
    if promise is not None:
        ends_of_line = [(promise, -0.5), (promise, len(rows) - 0.5)]
        picture.line(ends_of_line, "red", width=1.2, dash="5 4")
        picture.label(
            f"promised: {percent(promise)}", [(promise, -0.4), (promise, len(rows) - 0.6)], "red"
        )
    for place, (_, *shares) in enumerate(rows):
        for one, (_, shape, shift) in zip(shares, LOOKS, strict=True):
            if one is not None:
                ink: Ink = "blue" if promise is None or one.lower <= promise else "orange"
                picture.line([(one.lower, place + shift), (one.upper, place + shift)], ink)
                picture.points([(one.share, place + shift)], ink, shape=shape)
    for words, shape, _ in LOOKS:
        picture.legend(words, shape, "blue")
    return picture
