"""The learned measure as nodes of the graph: its inputs, and its formula."""

from collections.abc import Callable, Sequence

import numpy as np
from onnx import TensorProto

from howsure.onnx_head.builder import GraphBuilder
from howsure.statistics.learned.inputs import LEAST, least_rest, parse_rest
from howsure.statistics.learned.model import SATURATED_BELOW, LearnedModel
from howsure.statistics.records.records import TEMPERATURES


def add_inputs(
    build: GraphBuilder,
    names: Sequence[str],
    *,
    rest_ratio: Callable[[int, float], str],
    entropy: str,
    second: str,
) -> str:
    """Append the inputs, and return them side by side, shape (n, len(names)).

    Parameters
    ----------
    names
        As `howsure.statistics.learned.inputs.input_columns`.
    rest_ratio
        ``rest_ratio(k, T)`` appends the ratio of the other classes to the ``k`` top classes at a
        temperature, shape (n, 1).
    entropy, second
        The entropy and ``p_(2) / p_(1)``, shape (n, 1).
    """
    ratios, least = [], []
    for name in names:
        rest = parse_rest(name)
        if rest is None:
            ratios.append(entropy if name == "log_entropy" else second)
            least.append(LEAST)
            continue
        k, temperature = rest
        ratios.append(rest_ratio(k, 1.0 if temperature is None else TEMPERATURES[temperature]))
        least.append(least_rest(k, temperature))
    joined = ratios[0] if len(ratios) == 1 else build.add("Concat", *ratios, axis=1)
    bounds = build.numbers(np.array([least]))
    # By Where, because providers treat NaN in Max differently.
    held = build.add("Where", build.add("Less", joined, bounds), bounds, joined)
    return build.add("Log", held)


def add_learned(build: GraphBuilder, model: LearnedModel, inputs: str, classes: str) -> str:
    """Append `LearnedModel.uncertainty`, computed in float64; return float32 of shape (n, 1).

    Parameters
    ----------
    inputs
        The inputs of the model in float32, shape (n, 4).
    classes
        The top classes, int64 of shape (n, at least 2).
    """
    wide = build.add("Cast", inputs, to=TensorProto.DOUBLE)
    lower, upper = (build.constant(v[np.newaxis]) for v in (model.lower, model.upper))
    held = build.add("Where", build.add("Less", wide, lower), lower, wide)
    held = build.add("Where", build.add("Greater", held, upper), upper, held)
    square = build.constant(model.square[np.newaxis])
    slopes = build.add(
        "Add", build.constant(model.linear[np.newaxis]), build.add("Mul", square, held)
    )
    total = build.row_sums(build.add("Mul", slopes, held))
    total = build.add("Add", total, build.constant(np.array(model.intercept)))
    first = build.columns(classes, 0, 1)
    if model.slope.any():
        slope = build.add("Gather", build.constant(model.slope), first)
        total = build.add("Add", total, build.add("Mul", slope, build.columns(held, 0, 1)))
    for effect, chosen in ((model.offset, (0, 1)), (model.second, (1, 2))):
        if effect.any():
            column = first if chosen == (0, 1) else build.columns(classes, *chosen)
            total = build.add("Add", total, build.add("Gather", build.constant(effect), column))
    if model.saturated != 0.0:
        is_saturated = build.add(
            "Less", build.columns(wide, 1, 2), build.constant(np.array(SATURATED_BELOW))
        )
        more = build.add("Add", total, build.constant(np.array(model.saturated)))
        total = build.add("Where", is_saturated, more, total)
    negative = build.add("Sub", build.constant(np.array(0.0)), total)
    return build.add("Cast", negative, to=TensorProto.FLOAT)
