"""Charts of a further set beside the calibration set."""

from collections.abc import Sequence

from howsure.pictures.charts.calibration import cut_bar, cut_end
from howsure.pictures.elements import Point
from howsure.pictures.palette import Ink
from howsure.pictures.picture import Picture
from howsure.pictures.scales import Scale, percent

CALIBRATION_SET, FURTHER_SET = "calibration set", "this set"


def histogram(
    edges: Sequence[float], calibration: Sequence[float], further: Sequence[float], title: str
) -> Picture:
    """Draw the share of each set between edges, side by side; a bar far above the others is cut."""
    drawn = [at for at in range(len(edges) - 1) if calibration[at] or further[at]]
    most = cut_end([max(pair) for pair in zip(calibration, further, strict=True)])
    first, last = (drawn[0], drawn[-1] + 1) if drawn else (0, len(edges) - 1)
    picture = Picture(
        Scale(edges[first], edges[last], title),
        Scale(0.0, most, "share of the set", percent),
        height=170,
    )
    sets: tuple[tuple[str, Sequence[float], Ink, float], ...] = (
        (CALIBRATION_SET, calibration, "grey", 0.06),
        (FURTHER_SET, further, "orange", 0.5),
    )
    for name, shares, ink, start in sets:
        for at in drawn:
            width = edges[at + 1] - edges[at]
            left = edges[at] + start * width
            sides = (left, left + 0.44 * width)
            cut_bar(picture, sides, shares[at], most, ink, percent(round(shares[at], 3)))
        tops = [((edges[at] + edges[at + 1]) / 2, min(shares[at], most)) for at in drawn]
        picture.label(
            name, sorted(tops, key=lambda top: -top[1]), "muted" if ink == "grey" else ink
        )
    return picture


def above_confidence(calibration: Sequence[Point], further: Sequence[Point], title: str) -> Picture:
    """Draw a share of the samples at or above each confidence, for both sets."""
    picture = Picture(
        Scale(0.0, 1.0, "confidence of the model, at least", percent),
        Scale(0.0, 1.0, title, percent),
        height=170,
    )
    picture.line(calibration, "grey")
    picture.points(calibration, "grey", size=3)
    picture.line(further, "orange")
    picture.points(further, "orange", shape="square", size=3)
    picture.label(CALIBRATION_SET, calibration, "muted")
    picture.label(FURTHER_SET, further, "orange")
    return picture
