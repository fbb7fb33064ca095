"""The bin table as nodes of the graph: from an uncertainty to a bin, a probability, an interval.

Entry 0 of all tables is for values without a bin (NaN); bins start at 1. The index of an
uncertainty is then the number of edges below it, including -inf, because nothing is below NaN.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from howsure.onnx_head.builder import GraphBuilder
from howsure.statistics.bins.curve import Curve
from howsure.statistics.bins.lookup import LookupTable


@dataclass(frozen=True)
class LookupTensors:
    """Answers of a bin table, shape (n,): int64 and, in float32, ``lower <= probability <= upper``.

    If the uncertainty is NaN, the bin is -1 and the others are NaN.
    """

    bin: str
    probability: str
    lower: str
    upper: str


def add_lookup(
    build: GraphBuilder, table: LookupTable, uncertainty: str, column: str
) -> LookupTensors:
    """Append the nodes of `howsure.statistics.bins.lookup.LookupTable.look_up`.

    Parameters
    ----------
    build
        Of float32.
    uncertainty, column
        The same values, finite or NaN, of shape (n,) and (n, 1), float32.
    """
    places = _count_below(build, table.edges[1:-1], column)
    bins = build.add("Sub", places, build.integers([1]))
    if table.curve is not None:
        return LookupTensors(bins, *_on_curve(build, table.curve, uncertainty, column))
    if table.lookup == "interpolated":
        probability = _interpolated(build, table, uncertainty, column)
        return LookupTensors(bins, probability, *_widened(build, table, places, probability))
    rates = (table.probability, table.lower, table.upper)
    return LookupTensors(bins, *(_look_up(build, values, places, np.float32) for values in rates))


def _count_below(build: GraphBuilder, thresholds: NDArray[np.float32], column: str) -> str:
    """Return how many of -inf and the thresholds lie below each value, int64 of shape (n,).

    With the inner edges of bins closed on the right, that is the bin, counted from 1.
    """
    endless = np.concatenate([[-np.inf], thresholds]).astype(np.float32)
    is_above = build.add("Greater", column, build.constant(endless))
    counts = build.row_sums(build.add("Cast", is_above, to=TensorProto.FLOAT), keepdims=0)
    return build.add("Cast", counts, to=TensorProto.INT64)


def _look_up(
    build: GraphBuilder,
    values: NDArray[np.float64],
    places: str,
    dtype: type[np.float32] | type[np.float64],
) -> str:
    entries = np.concatenate([[np.nan], values]).astype(dtype)
    return build.add("Gather", build.constant(entries), places)


def _on_curve(
    build: GraphBuilder, curve: Curve, uncertainty: str, column: str
) -> tuple[str, str, str]:
    """Return probability, lower and upper, on the lines between knots, in float64."""
    start, base, slopes = curve.lines
    segments = _count_below(build, curve.uncertainty.astype(np.float32), column)
    wide = build.add("Cast", uncertainty, to=TensorProto.DOUBLE)
    along = build.add("Sub", wide, _look_up(build, start, segments, np.float64))

    def on_line(values: NDArray[np.float64], rises: NDArray[np.float64]) -> str:
        slope = _look_up(build, rises, segments, np.float64)
        rise = build.add("Mul", slope, along)
        at = build.add("Add", _look_up(build, values, segments, np.float64), rise)
        return build.add("Cast", at, to=TensorProto.FLOAT)

    probability, lower, upper = (on_line(*line) for line in zip(base, slopes, strict=True))
    return (
        probability,
        build.add("Where", build.add("Less", probability, lower), probability, lower),
        build.add("Where", build.add("Greater", probability, upper), probability, upper),
    )


def _interpolated(build: GraphBuilder, table: LookupTable, uncertainty: str, column: str) -> str:
    """Interpolate between the means of the bins, in float64 for steep slopes.

    The slope is 0 left of the first mean and right of the last.
    """
    knots, values = table.mean_uncertainty, table.probability
    slopes = np.concatenate([[0.0], np.diff(values) / np.diff(knots), [0.0]])
    lines = (np.append(knots[:1], knots), np.append(values[:1], values), slopes)
    segments = _count_below(build, _greatest_below(knots), column)
    start, base, slope = (_look_up(build, line, segments, np.float64) for line in lines)
    wide = build.add("Cast", uncertainty, to=TensorProto.DOUBLE)
    rise = build.add("Mul", slope, build.add("Sub", wide, start))
    return build.add("Cast", build.add("Add", base, rise), to=TensorProto.FLOAT)


def _greatest_below(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the largest float32 below each value; a larger float32 has reached the value."""
    near = values.astype(np.float32)
    return np.where(near < values, near, np.nextafter(near, np.float32(-np.inf)))


def _widened(
    build: GraphBuilder, table: LookupTable, places: str, probability: str
) -> tuple[str, str]:
    """Return the interval of the bin, widened where needed to hold the probability."""
    lower, upper = (_look_up(build, t, places, np.float32) for t in (table.lower, table.upper))
    is_below = build.add("Less", probability, lower)
    is_above = build.add("Greater", probability, upper)
    return (
        build.add("Where", is_below, probability, lower),
        build.add("Where", is_above, probability, upper),
    )
