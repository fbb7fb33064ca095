"""The model of the labels as nodes of the graph."""

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from howsure.onnx_head.builder import GraphBuilder
from howsure.onnx_head.measures import HeadTensors
from howsure.statistics.label_model.class_scores import LEAST
from howsure.statistics.label_model.model import LabelModel


@dataclass(frozen=True)
class LabelTensors:
    """The tensors of `LabelOdds`, in float64; ``rest`` is None if all classes are recorded."""

    eta: str
    rest: str | None


def add_label_model(
    build: GraphBuilder, model: LabelModel, head: HeadTensors, log_rest: str | None
) -> LabelTensors:
    """Append `LabelModel.odds`, in float64.

    Parameters
    ----------
    log_rest
        Its input beside the head, float32 of shape (n, 1); None if all classes are recorded.
    """
    m, n_classes = model.n_recorded, model.n_classes
    classes = build.columns(head.top_classes, 0, m)
    scores = build.add("Cast", build.columns(head.top_scores, 0, m), to=TensorProto.FLOAT)
    p = _at_least(build, build.add("Cast", scores, to=TensorProto.DOUBLE), LEAST)
    u, rest = _scaled(build, model, p, log_rest)
    eta = build.add(
        "Add",
        build.add("Mul", u, _of(build, 1.0 + model.slope, classes)),
        _of(build, model.offset, classes),
    )
    if model.confusion.any():
        row = build.add("Mul", build.columns(classes, 0, 1), build.integers([n_classes]))
        places = build.add("Add", row, classes)
        eta = build.add("Add", eta, _of(build, model.confusion.ravel(), places))
    if model.mixing.any():
        nothing = build.add("Mul", u, build.constant(np.array(0.0)))
        by_class = build.add("ScatterElements", nothing, classes, u, axis=1)
        mixed = build.add("MatMul", by_class, build.constant(model.mixing))
        eta = build.add("Add", eta, build.add("GatherElements", mixed, classes, axis=1))
    return LabelTensors(eta, rest)


def add_uncertainty(build: GraphBuilder, model: LabelModel, odds: LabelTensors, k: int) -> str:
    """Append `LabelOdds.uncertainty`, float32 of shape (n, 1)."""
    others = _beyond(build, model, odds, k)
    first = _log_sum_exp(build, build.columns(odds.eta, 0, k))
    return build.add("Cast", build.add("Sub", others, first), to=TensorProto.FLOAT)


def add_shares(build: GraphBuilder, model: LabelModel, odds: LabelTensors) -> str:
    """Append `LabelOdds.shares`, float64 of shape (n, m); the first column is any number."""
    return build.add("Exp", build.add("Sub", odds.eta, _beyond(build, model, odds, 1)))


def _scaled(
    build: GraphBuilder, model: LabelModel, p: str, log_rest: str | None
) -> tuple[str, str | None]:
    """Append `ClassScores.scaled`."""
    temperature, floor = (build.constant(np.array(v)) for v in (model.temperature, model.floor))
    floored = build.add("Add", p, floor) if model.floor > 0.0 else p
    u = build.add("Div", build.add("Log", floored), temperature)
    if log_rest is None:
        return build.add("Sub", u, _log_sum_exp(build, u)), None
    whole = _log_sum_exp(build, build.add("Div", build.add("Log", p), temperature))
    rest = build.add("Add", build.add("Cast", log_rest, to=TensorProto.DOUBLE), whole)
    if model.floor > 0.0:
        n_beyond = model.n_classes - model.n_recorded
        least = np.log(n_beyond) + np.log(model.floor) / model.temperature
        nothing = build.add("Mul", rest, build.constant(np.array(0.0)))  # of the rest's shape
        also = build.add("Add", nothing, build.constant(np.array(least)))
        rest = _log_sum_exp(build, build.add("Concat", rest, also, axis=1))
    total = _log_sum_exp(build, build.add("Concat", u, rest, axis=1))
    return build.add("Sub", u, total), build.add("Sub", rest, total)


def _beyond(build: GraphBuilder, model: LabelModel, odds: LabelTensors, k: int) -> str:
    """Append `LabelOdds.beyond`."""
    parts = [build.columns(odds.eta, k, model.n_recorded)] if k < model.n_recorded else []
    parts += [] if odds.rest is None else [odds.rest]
    return _log_sum_exp(build, parts[0] if len(parts) == 1 else build.add("Concat", *parts, axis=1))


def _log_sum_exp(build: GraphBuilder, values: str) -> str:
    most = build.largest(values, [1])
    total = build.row_sums(build.add("Exp", build.add("Sub", values, most)))
    return build.add("Add", most, build.add("Log", total))


def _of(build: GraphBuilder, values: np.ndarray, places: str) -> str:
    return build.add("Gather", build.constant(values), places)


def _at_least(build: GraphBuilder, values: str, bound: float) -> str:
    least = build.constant(np.array(bound))
    return build.add("Where", build.add("Less", values, least), least, values)
