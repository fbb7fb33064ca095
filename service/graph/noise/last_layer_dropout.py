"""Dropout before the last layer only, inside the graph; all earlier layers run once.

Ovadia et al. 2019, "LL-Dropout". The masks are constants of the graph, the same for all rows, so
the output for a row depends only on that row.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from howsure.onnx_head.builder import PREFIX, GraphBuilder, log1p
from howsure.onnx_head.measures import ratios_to_top
from service.graph.analysis import SmallConstants, tensor_types
from service.graph.class_scores import class_scores
from service.graph.description import OutputChoice
from service.graph.inline import inline_functions
from service.graph.noise.covariance import covariance_norm
from service.graph.noise.inputs import cast_like
from service.graph.noise.last_layer import LastLayer, find_last_layer
from service.graph.proto import attribute, keep_outputs

LARGEST_SIZE = 2**62  # of an axis: to the end, in a Slice


def repeat_tail(
    build: GraphBuilder, graph: GraphProto, layer: LastLayer, *, entry: str, tensor: str, times: int
) -> str:
    """Append a copy of the last layer and its tail that reads ``entry``; return the class scores.

    Parameters
    ----------
    entry
        Replaces the layer's input, with ``times`` as many rows on the first axis.
    tensor
        The scores of the model.
    """
    constants = SmallConstants(graph)
    new_names = {layer.entry: entry}
    for node in layer.tail:
        inputs = [new_names.get(name, name) for name in node.input]
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.name = ""
        if node.op_type == "Reshape":
            inputs[1:] = [_more_rows(build, name, constants, times) for name in inputs[1:]]
        copy.input[:] = inputs
        copy.output[:] = [build.new_name() if name else "" for name in node.output]
        graph.node.append(copy)
        made = list(copy.output)
        if node.op_type == "Shape" and inputs[0] == node.input[0]:
            made = [_times_as_many(build, node, made[0], times)]
        new_names.update(zip(node.output, made, strict=True))
    return new_names[tensor]


def _more_rows(build: GraphBuilder, shape: str, constants: SmallConstants, times: int) -> str:
    """Return a constant shape for ``times`` as many rows, if it contains the number of rows."""
    sizes = constants.read(shape)
    if sizes is None or sizes.size == 0 or sizes[0] <= 0:
        return shape
    return build.integers([int(sizes[0]) * times, *(int(size) for size in sizes[1:])])


def _times_as_many(build: GraphBuilder, node: NodeProto, shape: str, times: int) -> str:
    """Return the shape of a tensor outside the tail, as if it had ``times`` as many rows."""
    start = attribute(node, "start")
    if start is not None and start.i:
        return shape  # without the axis of the rows
    bounds = (build.integers([1]), build.integers([LARGEST_SIZE]), build.integers([0]))
    first = build.add("Slice", shape, build.integers([0]), build.integers([1]), bounds[2])
    rows = build.add("Mul", first, build.integers([times]))
    return build.add("Concat", rows, build.add("Slice", shape, *bounds), axis=0)


FEATURES = f"{PREFIX}features"


@dataclass(frozen=True)
class LastLayerTensors:
    """The variance over passes, (n, 1), and log p of each pass, (n, passes, classes)."""

    variance: str
    log_probabilities: str


def expose_features(model: ModelProto, choice: OutputChoice) -> ModelProto:
    """Make ``howsure_features``, the last layer's input, the only output, in place.

    Raises
    ------
    InvalidConfig
        If there is no last layer.
    """
    inline_functions(model)
    graph = model.graph
    layer = find_last_layer(graph, choice.tensor)
    node = helper.make_node("Cast", [layer.features], [FEATURES], to=TensorProto.FLOAT)
    graph.node.append(node)
    keep_outputs(graph, [helper.make_tensor_value_info(FEATURES, TensorProto.FLOAT, None)])
    return model


def add_last_layer_dropout(
    build: GraphBuilder, graph: GraphProto, choice: OutputChoice, masks: NDArray[np.float32]
) -> LastLayerTensors:
    """Append the passes with these masks, and their variance.

    Parameters
    ----------
    masks
        Factors of the features, shape (passes, *shape of one sample's features); at least two
        passes.

    Raises
    ------
    InvalidConfig
        If there is no last layer.
    """
    layer = find_last_layer(graph, choice.tensor)
    n_passes = len(masks)
    dropped = _dropped(build, graph, layer.features, masks)
    scores = repeat_tail(build, graph, layer, entry=dropped, tensor=choice.tensor, times=n_passes)
    rows = class_scores(build, scores, choice)
    probabilities, logs = _distribution(build, rows, choice)
    shape = build.integers([-1, n_passes, choice.n_classes])
    variance = covariance_norm(
        build,
        build.add("Reshape", probabilities, shape),
        n_passes=n_passes,
        n_classes=choice.n_classes,
    )
    return LastLayerTensors(variance, build.add("Reshape", logs, shape))


def _dropped(
    build: GraphBuilder, graph: GraphProto, features: str, masks: NDArray[np.float32]
) -> str:
    """Return the features times each mask, the passes of a row next to each other on axis 0."""
    sizes = masks.shape[1:]
    known = tensor_types(graph, build.opset).get(features)
    drawn = cast_like(build, build.constant(masks), features, known)
    apart = build.add("Reshape", features, build.integers([-1, 1, *sizes]))
    together = build.add("Mul", apart, drawn)
    return build.add("Reshape", together, build.integers([-1, *sizes]))


def _distribution(build: GraphBuilder, scores: str, choice: OutputChoice) -> tuple[str, str]:
    """Return p and log p of each row of class scores, from the odds against the top class."""
    top, top_class = build.top(scores, 1, choice.n_classes)
    ratios, log_ratios, top_ratio = ratios_to_top(build, choice.kind, scores, top, top_class)
    nothing = build.add("Mul", top_ratio, build.number(0))
    others = build.row_sums(build.add("ScatterElements", ratios, top_class, nothing, axis=1))
    total = build.add("Add", others, build.number(1))
    logs = build.add("Sub", log_ratios, log1p(build, others))
    return build.add("Div", ratios, total), logs
