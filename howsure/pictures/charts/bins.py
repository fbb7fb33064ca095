"""Charts of bins and samples: odds of a hit and outcomes by bin, and loss by uncertainty."""

from collections.abc import Mapping, Sequence

from howsure.pictures.elements import Point, Shape
from howsure.pictures.palette import Ink
from howsure.pictures.picture import Picture
from howsure.pictures.scales import Scale, percent, plain_number, round_above

_LEAST_RATIO, _ROOM = 2.0, 2.5
_MOST_BINS = 10  # of which each has a tick


def odds_ratios(ratios: Mapping[int, float], mean: float | None) -> Picture:
    """Draw the odds of a hit in each bin, relative to those of all samples, on a log axis.

    Bins count from 1; ratios are positive. ``mean`` is the mean factor by which they differ.
    """
    most = max([*ratios.values(), mean or 1.0, _LEAST_RATIO]) * _ROOM
    least = min([*ratios.values(), 1 / _LEAST_RATIO]) / 1.3
    last = max(ratios, default=1)
    picture = Picture(
        Scale(0.5, last + 0.5, "bin, the most certain first", ticks=_bin_ticks(last)),
        Scale(least, most, "odds of a correct answer, to those of all", _ratio, "log"),
        height=190,
    )
    for place, ratio in ratios.items():
        ink: Ink = "blue" if ratio >= 1.0 else "orange"
        picture.bar((place - 0.38, 1.0), (place + 0.38, ratio), ink)
    if mean is not None:
        ends = [(0.5, mean), (last + 0.5, mean)]
        picture.line(ends, "ink", width=1, dash="4 3")
        picture.label(
            f"mean factor {plain_number(float(f'{mean:.3g}'))}",
            [ends[1], (last / 2, mean), ends[0]],
        )
    picture.line([(0.5, 1.0), (last + 0.5, 1.0)], "muted", width=1)
    return picture


def _bin_ticks(last: int) -> Sequence[int]:
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, last) if last / step <= _MOST_BINS)
    return [1, *(at for at in range(step, last + 1, step) if at > 1)]


def _ratio(value: float) -> str:
    return f"{value:,.0f}" if value >= 1.0 else f"1/{1 / value:,.0f}"


def odds_by_share(measures: Sequence[tuple[str, Sequence[Point]]]) -> Picture:
    """Draw the odds of a hit along the samples, by measure, up to four; the odds are on a log axis.

    A point is the share of samples up to the middle of a bin, the most certain first, and the odds
    in that bin, relative to those of all samples.
    """
    ratios = [ratio for _, points in measures for _, ratio in points]
    picture = Picture(
        Scale(0.0, 1.0, "share of samples, the most certain first", percent),
        Scale(
            min([*ratios, 1 / _LEAST_RATIO]) / 1.3,
            max([*ratios, _LEAST_RATIO]) * _ROOM,
            "odds of a correct answer, to those of all",
            _ratio,
            "log",
        ),
        height=250,
    )
    picture.line([(0.0, 1.0), (1.0, 1.0)], "muted", width=1)
    for (name, points), (ink, dash) in zip(measures, _LINES, strict=False):
        picture.line(points, ink, width=1.6, dash=dash)
        if len(points) == 1:
            picture.points(points, ink)
        picture.label(name, points, ink)
    return picture


_LINES: tuple[tuple[Ink, str], ...] = (
    ("blue", "none"),
    ("orange", "7 3"),
    ("green", "2 2"),
    ("ink", "8 3 2 3"),
)


def outcomes(layers: Sequence[tuple[str, Ink, Sequence[int]]]) -> Picture:
    """Draw how many samples of each bin have each outcome, one above the other.

    A layer is an outcome, its colour, and its samples in each bin.
    """
    heights = [sum(stack) for stack in zip(*(counts for *_, counts in layers), strict=True)]
    last = max(len(heights), 1)
    picture = Picture(
        Scale(0.5, last + 0.5, "bin, the most certain first", ticks=_bin_ticks(last)),
        Scale(0.0, _end(1.05 * max(heights, default=0)), "samples"),
        height=170,
    )
    floors = [0] * len(heights)
    for outcome, ink, counts in layers:
        tops = [floor + count for floor, count in zip(floors, counts, strict=True)]
        picture.bars(
            [
                ((place - 0.42, floor), (place + 0.42, top))
                for place, (floor, top) in enumerate(zip(floors, tops, strict=True), 1)
                if floor < top
            ],
            ink,
        )
        floors = tops
        picture.legend(outcome, "square", ink)
    return picture


def loss_scatter(outcomes: Sequence[tuple[str, Sequence[Point]]]) -> Picture:
    """Draw uncertainty against loss of samples by outcome, up to three; axes are square roots."""
    points = [point for _, samples in outcomes for point in samples]
    uncertainties = [x for x, _ in points]
    least, most = min([*uncertainties, 0.0]), max([*uncertainties, 0.0])
    picture = Picture(
        Scale(least, _end(most) if most > 0.0 or least == 0.0 else 0.0, "uncertainty", kind="root"),
        Scale(
            0.0,
            _end(max((y for _, y in points), default=0.0)),
            "loss, \u2212log(probability of the label)",
            kind="root",
        ),
        height=260,
    )
    for (outcome, samples), (shape, ink) in zip(outcomes, _LOOKS, strict=False):
        picture.points(samples, ink, shape=shape, size=2.4, is_hollow=True)
        picture.legend(outcome, shape, ink)
    return picture


_LOOKS: tuple[tuple[Shape, Ink], ...] = (
    ("circle", "blue"),
    ("cross", "orange"),
    ("triangle", "green"),
)


def _end(most: float) -> float:
    return round_above(most) if most > 0.0 else 1.0
