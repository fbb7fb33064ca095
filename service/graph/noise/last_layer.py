"""Find the layer that makes the class scores from features."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnx import GraphProto, NodeProto

from howsure.onnx_head.liveness import subgraphs
from service.errors import InvalidConfig
from service.graph.analysis import RANDOM, SmallConstants, varying_tensors
from service.graph.description import quote
from service.graph.noise.dropout import dropout_rate, is_dropout
from service.graph.proto import DEFAULT_DOMAINS, Producers, attribute, operator, producers_of

WHAT_COUNTS = "a Gemm, MatMul or 1x1 Conv with constant weights"


def features_of(node: NodeProto, constants: SmallConstants, varying: set[str]) -> str | None:
    """Return the input with the features if the node is such a layer.

    Raises
    ------
    InvalidConfig
        If it is such a layer, but its input is not one row of features per sample.
    """
    if node.domain not in DEFAULT_DOMAINS or len(node.input) < 2:  # noqa: PLR2004 - x, weights
        return None
    is_varying = [name in varying for name in node.input]
    match node.op_type:
        case "Gemm":
            return _of_gemm(node, is_varying)
        case "MatMul":
            return _of_product(node, is_varying)
        case "Conv":
            return _of_convolution(node, constants, is_varying)
    return None


def _of_product(node: NodeProto, is_varying: Sequence[bool]) -> str | None:
    if is_varying[:2] == [False, True]:
        raise _no_features(node, "whose weights are on the left: rows must be samples")
    return _first(node) if is_varying[:2] == [True, False] else None


def _first(node: NodeProto) -> str:
    name: str = node.input[0]
    return name


def _of_gemm(node: NodeProto, is_varying: Sequence[bool]) -> str | None:
    features = _of_product(node, is_varying)
    transposed = attribute(node, "transA")
    if features is not None and transposed is not None and transposed.i:
        raise _no_features(node, "which transposes its input: rows must be samples")
    if features is not None and any(is_varying[2:]):
        raise _no_features(node, "whose addend is computed, as in a residual connection")
    return features


def _of_convolution(
    node: NodeProto, constants: SmallConstants, is_varying: Sequence[bool]
) -> str | None:
    if not is_varying[0] or any(is_varying[1:]):
        return None
    kernel = _kernel(node, constants)
    if kernel is None or any(size != 1 for size in kernel):
        size = "x".join(map(str, kernel)) if kernel else "unknown"
        raise _no_features(node, f"whose kernel is {size}")
    return _first(node)


def _kernel(node: NodeProto, constants: SmallConstants) -> list[int] | None:
    declared = attribute(node, "kernel_shape")
    if declared is not None:
        return list(declared.ints)
    shape = constants.shape(node.input[1])
    return None if shape is None else shape[2:]


MEASURE = "last_layer_dropout_variance"

# Layers whose weights this search does not recognise.
LAYERS_OF_OTHER_KINDS = frozenset(
    (
        *("ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv", "Einsum", "Attention"),
        *("MatMulInteger", "QLinearMatMul", "LSTM", "GRU", "RNN"),
    )
)
# They change no value but its type: a Dropout before one applies to the layer's input.
CHANGES_OF_SHAPE = frozenset(("Identity", "Cast", "Flatten", "Reshape", "Squeeze", "Unsqueeze"))


@dataclass(frozen=True, eq=False)
class LastLayer:
    """The last layer, and the nodes from it to the class scores.

    Attributes
    ----------
    features : str
        The layer's input, before its Dropout if it has one.
    rate : float or None
        The ratio of that Dropout; None if there is none, or the ratio is computed.
    operator : str
        Gemm, MatMul or Conv.
    entry : str
        The input of the layer's node: the features, or their Dropout.
    tail : tuple of NodeProto
        The layer and the nodes after it, in the graph's order. They read the entry, constants,
        their own outputs, and shapes of tensors.
    """

    features: str
    rate: float | None
    operator: str
    entry: str
    tail: tuple[NodeProto, ...]


def find_last_layer(graph: GraphProto, tensor: str) -> LastLayer:
    """Search back from the class scores for the layer with constant weights that makes them.

    Raises
    ------
    InvalidConfig
        If there is none, or the scores depend on other values as well.
    """
    constants = SmallConstants(graph)
    layers, tail = _walk_back(graph, tensor, constants)
    if len(layers) != 1:
        raise _not_alone(layers) if layers else _refused("they do not depend on what is fed")
    ((place, entry),) = layers.items()
    producers = producers_of(graph)
    before = producers.get(entry)
    features = before.input[0] if before is not None and is_dropout(before) else entry
    return LastLayer(
        features=features,
        rate=_rate_before(entry, producers, constants),
        operator=graph.node[place].op_type,
        entry=entry,
        tail=tuple(graph.node[index] for index in sorted({place, *tail})),
    )


def _walk_back(
    graph: GraphProto, tensor: str, constants: SmallConstants
) -> tuple[dict[int, str], set[int]]:
    """Return the layers that make the scores, each with its input, and the nodes after them."""
    places = {name: index for index, node in enumerate(graph.node) for name in node.output}
    varying = varying_tensors(graph)
    waiting, layers = [tensor], dict[int, str]()
    tail: set[int] = set()
    while waiting:
        name = waiting.pop()
        if name not in varying:
            continue
        if name not in places:
            raise _reaches_input(graph, tail, name)
        place = places[name]
        if place in tail or place in layers:
            continue
        node = graph.node[place]
        entry = features_of(node, constants, varying)
        if entry is not None:
            layers[place] = entry
            continue
        _refuse_operator(node)
        tail.add(place)
        if not _is_shape(node):  # only the number of rows matters
            waiting.extend(node.input)
    return layers, tail


def _no_features(node: NodeProto, reason: str) -> InvalidConfig:
    return _refused(f"they are made by {operator(node)}, {reason}")


def _refuse_operator(node: NodeProto) -> None:
    named = operator(node)
    if node.op_type in RANDOM:
        raise _refused(f"{named} draws at random after it")
    if (
        node.domain not in DEFAULT_DOMAINS and named != "ai.onnx.ml.Normalizer"
    ) or node.op_type in LAYERS_OF_OTHER_KINDS:
        raise _refused(f"they are made by {named}, which is none")
    if any(subgraphs(node)):
        raise _refused(f"they are made by {named}, a branch or loop")


def _is_shape(node: NodeProto) -> bool:
    return node.op_type == "Shape" and node.domain in DEFAULT_DOMAINS


def _rate_before(entry: str, producers: Producers, constants: SmallConstants) -> float | None:
    for node in _makers(entry, producers):
        if is_dropout(node):
            return dropout_rate(node, constants)
        if node.op_type not in CHANGES_OF_SHAPE or node.domain not in DEFAULT_DOMAINS:
            return None
    return None


def _makers(tensor: str, producers: Producers) -> Iterator[NodeProto]:
    seen: set[str] = set()
    while tensor not in seen and (node := producers.get(tensor)) is not None and node.input:
        seen.add(tensor)
        yield node
        tensor = node.input[0]


def _reaches_input(graph: GraphProto, tail: set[int], name: str) -> InvalidConfig:
    operators = [operator(graph.node[place]) for place in sorted(tail, reverse=True)]
    passed = f"back over {', '.join(operators[:5])} they lead" if operators else "they lead"
    return _refused(f"{passed} to the graph's input {quote(name)} without one")


def _not_alone(layers: dict[int, str]) -> InvalidConfig:
    inputs = ", ".join(quote(name) for name in list(layers.values())[:5])
    return _refused(
        f"they come from {len(layers)} such layers, which read {inputs}: past the last layer "
        "nothing else may join in, as around a residual connection"
    )


def _refused(found: str) -> InvalidConfig:
    return InvalidConfig.at(
        "config.measures",
        f"{MEASURE}: the class scores must come from one last layer, {WHAT_COUNTS}, and nothing "
        f"else; {found}",
    )
