"""Dropout nodes whose masks are graph inputs."""

from collections.abc import Mapping

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TypeProto

from howsure.onnx_head.builder import GraphBuilder
from howsure.onnx_head.liveness import upstream
from service.errors import InvalidConfig, InvalidOnnxModel, ModelRule
from service.graph.analysis import RANDOM, SmallConstants, varying_tensors
from service.graph.description import NoiseSite, quote
from service.graph.noise.inputs import cast_like, feed_noise, noise_site, noisy_places
from service.graph.output.logits import trace
from service.graph.proto import DEFAULT_DOMAINS, attribute, producers_of

USUAL_RATIO = 0.5  # the default of the operator


def dropout_rate(node: NodeProto, constants: SmallConstants) -> float | None:
    """Return the ratio of a Dropout node, an attribute before opset 12; None if it is computed.

    Raises
    ------
    InvalidOnnxModel
        If it is not a number of [0, 1).
    """
    own = attribute(node, "ratio")
    ratio = USUAL_RATIO if own is None else _shortest(np.float32(own.f))
    if len(node.input) > 1 and node.input[1]:
        values = constants.read(node.input[1])
        if values is None:
            return None
        ratio = _shortest(values.reshape(-1)[0]) if values.size == 1 else -1.0
    if not 0.0 <= ratio < 1.0:
        raise InvalidOnnxModel.because(
            ModelRule.NOISE,
            f"the Dropout node that makes {quote(node.output[0])} has the ratio {ratio:.4g}; a "
            "number of at least 0 and below 1 is needed",
        )
    return ratio


def _shortest(value: np.generic) -> float:
    """Return the shortest decimal of a float32, such as 0.1."""
    return float(str(value))


DROPOUT = "Dropout"
TRAINING_MODE = 2  # the place of its input
# The mask output of an inactive Dropout in ONNX Runtime: all true since this opset, false before.
MASK_IS_TRUE_SINCE = 12


def expose_dropout(model: ModelProto, tensor: str, *, rate: float | None) -> list[NoiseSite]:
    """Replace every Dropout node that the tensor depends on by a product with a mask, in place.

    The masks are inputs of the graph, in the order of its nodes. With ones, the graph equals the
    model in ONNX Runtime, where Dropout is inactive.

    Parameters
    ----------
    rate
        Share to drop, replacing the nodes' own ratios.

    Raises
    ------
    InvalidConfig
        If there is no such node, or all have the ratio 0.
    InvalidOnnxModel
        If one is in a branch or loop, or its ratio is not a constant in [0, 1).
    """
    places = noisy_places(
        model, tensor, holding=(DROPOUT,), is_noisy=is_dropout, nested=_nested_message
    )
    graph = model.graph
    rates = _rates(graph, places, rate)
    if not any(rates):
        operators = {graph.node[place].op_type for place in upstream(graph, [tensor])}
        raise _nothing_dropped(found=bool(places), draws=bool(operators & RANDOM))
    varying = varying_tensors(graph)
    sites = [
        noise_site(number, "keep", rate=own, depends_on_rows=graph.node[place].input[0] in varying)
        for number, (place, own) in enumerate(zip(places, rates, strict=True))
    ]
    feed_noise(model, places, sites, _add_product)
    return sites


def is_dropout(node: NodeProto) -> bool:
    """Return whether the node is a Dropout with an input."""
    return node.op_type == DROPOUT and node.domain in DEFAULT_DOMAINS and len(node.input) > 0


def has_active_dropout(model: ModelProto, tensor: str) -> bool:
    """Return whether an output ends in a Dropout that drops when ONNX Runtime runs it.

    Before other nodes the runtime removes a Dropout, also one in training mode.
    """
    producers, constants = producers_of(model.graph), SmallConstants(model.graph)
    last = (producers.get(name) for name in trace(tensor, producers))
    return any(
        node is not None and is_dropout(node) and _is_active(node, constants) for node in last
    )


def _is_active(node: NodeProto, constants: SmallConstants) -> bool:
    """Return whether its third input, since opset 12, says so, and it has a ratio above 0."""
    if len(node.input) <= TRAINING_MODE or not node.input[TRAINING_MODE]:
        return False
    mode = constants.read(node.input[TRAINING_MODE])
    is_training = mode is None or bool(mode.any())
    return is_training and dropout_rate(node, constants) != 0.0


def _add_product(
    build: GraphBuilder, node: NodeProto, site: NoiseSite, types: Mapping[str, TypeProto]
) -> TypeProto | None:
    given, made = node.input[0], list(node.output)
    known = types.get(given)
    mask = cast_like(build, site.name, given, known)
    build.add("Mul", given, mask, output=made[0])
    shape = build.add("Shape", given, output=site.shape_output)
    if len(made) > 1 and made[1]:  # the mask is an output as well
        least = 0 if build.opset >= MASK_IS_TRUE_SINCE else 1
        kept = build.add("Greater", site.name, build.number(least))
        build.add("Expand", kept, shape, output=made[1])
    return known


def _rates(graph: GraphProto, places: list[int], rate: float | None) -> list[float]:
    if rate is not None:
        return [rate] * len(places)
    constants = SmallConstants(graph)
    rates = []
    for place in places:
        node = graph.node[place]
        own = dropout_rate(node, constants)
        if own is None:
            raise InvalidOnnxModel.because(
                ModelRule.NOISE,
                f"the ratio of the Dropout node that makes {quote(node.output[0])} is computed or "
                "fed, not a constant of the file; set dropout.rate",
            )
        rates.append(own)
    return rates


def _nested_message(_inner: NodeProto, outer: NodeProto) -> str:
    return (
        f"a Dropout node inside of {outer.op_type} cannot be fed with a mask; export the model "
        "without the branch or loop around it, or use last_layer_dropout_variance"
    )


def _nothing_dropped(*, found: bool, draws: bool) -> InvalidConfig:
    if found:
        return InvalidConfig.at(
            "config.measures",
            "dropout_variance: every Dropout node of the model has the ratio 0; set dropout.rate",
        )
    other = ", or ensemble_variance for its random operators" if draws else ""
    return InvalidConfig.at(
        "config.measures",
        "dropout_variance: no Dropout node stands before the model's class scores (exporters "
        "leave them out of a model in evaluation mode); export it in training mode, or use "
        f"last_layer_dropout_variance{other}",
    )
