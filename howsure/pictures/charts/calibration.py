"""Charts of calibration: stated probabilities against the share of answers that were correct."""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from howsure.pictures.elements import Shape
from howsure.pictures.lettering import fit_text, text_width
from howsure.pictures.palette import Ink
from howsure.pictures.picture import Picture
from howsure.pictures.scales import Names, Scale, percent, round_above

FEW = 10  # samples, of which a share is mostly luck
_FAINT = 0.4
_LARGEST = 6.0  # radius of the group with the most samples
_SMALLEST = 2.0
_LARGEST_OF_MANY = 3.0
_SMALLEST_OF_MANY = 1.5
_MOST_OF_LABEL = 126.0  # pixels
_CUT = 2.5  # bars so many times as tall as the next are cut
BEFORE: tuple[Shape, Ink] = ("square", "orange")
AFTER: tuple[Shape, Ink] = ("circle", "blue")


class Group(Protocol):
    """Samples of similar stated probability: its mean, and the share of hits with an interval.

    ``group`` is the place of a range.
    """

    @property
    def group(self) -> int: ...
    @property
    def said(self) -> float: ...
    @property
    def hit_rate(self) -> float: ...
    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...
    @property
    def count(self) -> int: ...
    @property
    def hits(self) -> int: ...


def reliability(before: Sequence[Group], after: Sequence[Group], *, outcome: str) -> Picture:
    """Draw stated probability against the share of hits; the area of a point shows its samples.

    Groups of few samples are faint. ``outcome`` names the share, such as ``correct``. The axes
    begin a tenth below the lowest point or interval.
    """
    picture = _diagonal([min(group.said, group.lower) for group in (*before, *after)], outcome)
    largest = max((group.count for group in (*before, *after)), default=1)
    for name, groups, (shape, ink) in (("before", before, BEFORE), ("after", after, AFTER)):
        for group in groups:
            size = _SMALLEST + (_LARGEST - _SMALLEST) * math.sqrt(group.count / largest)
            stated, opacity = group.said, 1.0 if group.count >= FEW else _FAINT
            picture.line([(stated, group.lower), (stated, group.upper)], ink, width=1.2)
            picture.points([(stated, group.hit_rate)], ink, shape=shape, size=size, opacity=opacity)
        anchors = [(group.said, group.hit_rate) for group in groups]
        picture.label(f"{name} calibration", anchors, ink)
    return picture


def _diagonal(shares: Sequence[float], outcome: str) -> Picture:
    """Draw the diagonal between axes that begin a tenth below the least of these shares."""
    least = min(math.floor(10 * min(shares, default=0.0) + 1e-9) / 10, 0.9)
    picture = Picture(
        Scale(least, 1.0, "stated probability", percent),
        Scale(least, 1.0, f"share that was {outcome}", percent),
        height=270,
    )
    picture.line([(least, least), (1.0, 1.0)], "muted", width=1, dash="4 3")
    return picture


class Spot(NamedTuple):
    """A bin of a reliability diagram: mean stated probability, share of hits, and samples."""

    said: float
    hit_rate: float
    samples: int


def reliability_diagram(before: Sequence[Spot], after: Sequence[Spot]) -> Picture:
    """Draw up to some hundred bins as `reliability` does, smaller and without intervals."""
    spots = (*before, *after)
    picture = _diagonal([min(spot.said, spot.hit_rate) for spot in spots], "correct")
    largest = max((spot.samples for spot in spots), default=1)

    def look(spot: Spot) -> tuple[float, float]:
        size = (_LARGEST_OF_MANY - _SMALLEST_OF_MANY) * math.sqrt(spot.samples / largest)
        return round(_SMALLEST_OF_MANY + size, 1), 1.0 if spot.samples >= FEW else _FAINT

    for name, bins, (shape, ink) in (("before", before, BEFORE), ("after", after, AFTER)):
        for (size, opacity), alike in groupby(sorted(bins, key=look), key=look):
            points = [(spot.said, spot.hit_rate) for spot in alike]
            picture.points(points, ink, shape=shape, size=size, opacity=opacity)
        anchors = [(spot.said, spot.hit_rate) for spot in bins]
        picture.label(f"{name} calibration", anchors, ink)
    return picture


def confidence_histogram(ranges: Sequence[Group], n_ranges: int) -> Picture:
    """Draw how many answers of each range of confidence were correct and wrong, side by side.

    A bar that would leave nothing of the others is cut, and its number is written on it.
    """
    counts = {
        "correct": [(row.group, row.hits) for row in ranges],
        "wrong": [(row.group, row.count - row.hits) for row in ranges],
    }
    most = cut_end([max(row.hits, row.count - row.hits) for row in ranges])
    picture = Picture(
        Scale(0.0, 1.0, "confidence of the model", percent), Scale(0.0, most, "samples"), height=170
    )
    sides: tuple[tuple[str, Ink, float], ...] = (("correct", "blue", 0.0), ("wrong", "orange", 0.5))
    for side, ink, shift in sides:
        for group, count in counts[side]:
            left = (group + shift + (0.06 if shift == 0.0 else 0.0)) / n_ranges
            right = left + 0.44 / n_ranges
            cut_bar(picture, (left, right), count, most, ink, f"{count:,}")
        tops = [((group + 0.5) / n_ranges, min(count, most)) for group, count in counts[side]]
        picture.label(side, sorted(tops, key=lambda top: -top[1]), ink)
    return picture


def cut_end(heights: Sequence[float]) -> float:
    """Return where an axis of bars ends: above the tallest that is not far above the next."""
    tallest = sorted(value for value in heights if value > 0)[-3:]
    if len(tallest) > 1 and tallest[-1] > _CUT * tallest[-2]:
        return round_above(1.2 * tallest[-2])
    return round_above(1.1 * tallest[-1]) if tallest else 1.0


def cut_bar(
    picture: Picture,
    sides: tuple[float, float],
    height: float,
    most: float,
    ink: Ink,
    written: str,
) -> None:
    """Draw a bar from 0; one beyond the axis has a gap near its end, and its height beside."""
    left, right = sides
    if height <= most:
        picture.bar((left, 0.0), (right, height), ink)
        return
    picture.bar((left, 0.0), (right, 0.86 * most), ink)
    picture.bar((left, 0.9 * most), (right, most), ink)
    picture.label(written, [((left + right) / 2, 0.93 * most)], ink)


def classes(names: Sequence[str], groups: Sequence[Group]) -> Picture:
    """Draw the share that was correct, with its interval, and what was stated, by class."""
    labels = []
    for name, group in zip(names, groups, strict=True):
        count = f"  ({group.count:,})"
        labels.append(fit_text(name, _MOST_OF_LABEL - text_width(count)) + count)
    ends = [min(group.lower, group.said) for group in groups]
    least = min(math.floor(10 * min(ends, default=0.0) + 1e-9) / 10, 0.9)
    picture = Picture(
        Scale(least, 1.0, "", percent),
        Names(labels),
        height=22.0 * max(len(names), 1),
    )
    for place, group in enumerate(groups):
        picture.line([(group.lower, place), (group.upper, place)], "blue")
        picture.points([(group.hit_rate, place)], "blue")
        picture.points([(group.said, place)], "orange", shape="tick")
    picture.legend("correct", "circle", "blue")
    picture.legend("stated", "tick", "orange")
    return picture
