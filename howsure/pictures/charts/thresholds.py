"""The chart of thresholds: how many answers are accepted, and how many of these are wrong."""

from collections.abc import Sequence
from typing import NamedTuple

from howsure.pictures.lettering import fit_text
from howsure.pictures.picture import WIDTH, Picture
from howsure.pictures.scales import Scale, percent

MIN_COVERAGE = 0.1  # below it the band is as wide as the picture
_FEW_POINTS = 30
_NEARLY_ALL = 0.55
_MOST_OF_NAME = 110.0  # pixels


class RiskCurve(NamedTuple):
    """Error rates of accepted answers by the share accepted, ascending; a band around them.

    A share is proven if its ``bound`` is at most the promise; None if there is no exact test.
    """

    coverage: Sequence[float]
    risk: Sequence[float]
    lower: Sequence[float]
    upper: Sequence[float]
    bound: Sequence[float] | None = None


class Threshold(NamedTuple):
    """A threshold: what it accepts, and what it promises.

    ``coverage`` and ``risk`` are None where nothing could be proven, ``promise`` where nothing is
    promised. ``evaluation`` is the share that it accepts of the evaluation set, and its error rate.
    """

    name: str
    coverage: float | None
    risk: float | None
    promise: float | None
    evaluation: tuple[float, float] | None = None


def risk_coverage(
    curve: RiskCurve, thresholds: Sequence[Threshold], width: float = WIDTH
) -> Picture:
    """Draw the curve, its band and bound; what is promised, and what each threshold accepts.

    The first threshold's share is tinted. It ends where the bound crosses the promise.
    """
    picture = Picture(
        Scale(0.0, 1.0, "share of answers accepted, the most certain first", percent),
        Scale(0.0, _most(curve, thresholds), "error rate among accepted answers", percent),
        height=230 if width == WIDTH else 300,
        width=width,
    )
    top = _most(curve, thresholds)
    first = thresholds[0].coverage if thresholds else None
    if first is not None:
        picture.bar((0.0, 0.0), (first, top), "green", opacity=0.08, is_background=True)
    points = list(zip(curve.coverage, curve.risk, strict=True))
    # A band that leaves the picture would hide what is at its end.
    lower, upper = (
        [(x, min(y, top)) for x, y in zip(curve.coverage, band, strict=True)]
        for band in (curve.lower, curve.upper)
    )
    picture.area(lower, upper, "blue")
    heights = () if curve.bound is None else curve.bound
    bound = [(x, y) for x, y in zip(curve.coverage, heights, strict=False) if y <= top]
    picture.line(bound, "grey", width=1.4)
    picture.line(points, "blue")
    if len(points) <= _FEW_POINTS:
        picture.points(points, "blue", size=2.5)
    for threshold in thresholds:
        _mark(picture, threshold, top)
    ends = [point for point in points if point[0] >= _NEARLY_ALL]
    picture.label("measured", ends[::-4], "blue")
    picture.label(
        "tested bound", [point for point in bound if point[0] >= _NEARLY_ALL][::-4], "muted"
    )
    return picture


def _mark(picture: Picture, threshold: Threshold, top: float) -> None:
    _, coverage, risk, promise, evaluation = threshold
    name = fit_text(threshold.name, _MOST_OF_NAME)
    if promise is not None and promise <= top:
        end = 1.0 if coverage is None else coverage
        picture.line([(0.0, promise), (end, promise)], "red", width=1.2, dash="5 4")
        if coverage is None:
            picture.label(f"{name}: not proven", [(0.5, promise), (0.2, promise)], "red")
    if coverage is None:
        return
    rate = risk or 0.0
    picture.line([(coverage, 0.0), (coverage, max(rate, promise or 0.0))], "ink", width=1)
    picture.points([(coverage, rate)], "ink", shape="diamond", size=4.5)
    picture.label(
        f"{name}: accept {percent(round(coverage, 3))}",
        [(coverage, rate), (coverage, promise or rate)],
    )
    if evaluation is not None:
        picture.points([evaluation], "orange", is_hollow=True)
        picture.label(f"evaluation set: {percent(round(evaluation[1], 3))}", [evaluation], "orange")


def _most(curve: RiskCurve, thresholds: Sequence[Threshold]) -> float:
    """Return where the axis of risks ends: above the curve, and the bands where they are narrow."""
    risks = [
        risk
        for coverage, risk in zip(curve.coverage, curve.risk, strict=True)
        if coverage >= MIN_COVERAGE
    ]
    proven = [one.promise for one in thresholds if one.coverage is not None and one.promise]
    # Without errors the axis would end at the curve, and cut its intervals.
    widest = 0.0 if any(risks) else curve.upper[-1]
    most = max(1.4 * max(risks, default=1.0), 1.2 * max(proven, default=0.0), 1.1 * widest)
    return min(1.0, max(most, 1e-4))
