"""Finding the layer that makes the class scores from features."""

from collections.abc import Iterator
from dataclasses import dataclass

from onnx import GraphProto, NodeProto

from service.errors import InvalidConfig
from service.graph.constants import RANDOM, SmallConstants, varying_tensors
from service.graph.dropout import is_dropout
from service.graph.dropout_rate import dropout_rate
from service.graph.linear_layer import WHAT_COUNTS, HasNoFeatures, features_of
from service.graph.quote import quote
from service.graph.softmax import Producers, operator, producers_of
from service.graph.versions import DEFAULT_DOMAINS
from service.graph.walk import subgraphs

MEASURE = "last_layer_dropout_variance"

# Behind one of these a layer's weights may hide.
LAYERS_OF_OTHER_KINDS = frozenset(
    (
        *("ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv", "Einsum", "Attention"),
        *("MatMulInteger", "QLinearMatMul", "LSTM", "GRU", "RNN"),
    )
)
# They change no value, or its type alone: a Dropout before one drops what the layer takes.
CHANGES_OF_SHAPE = frozenset(("Identity", "Cast", "Flatten", "Reshape", "Squeeze", "Unsqueeze"))


@dataclass(frozen=True, eq=False)
class LastLayer:
    """The last layer, and all that follows it up to the class scores.

    Attributes
    ----------
    features : str
        What the layer takes, before its Dropout if it has one.
    rate : float or None
        The ratio of that Dropout; None where there is none, or its ratio is computed.
    operator : str
        Gemm, MatMul or Conv.
    entry : str
        What the layer's node reads: the features, or the Dropout of them.
    tail : tuple of NodeProto
        The layer and what follows, in the graph's order. They read the entry, constants, what one
        of them made, and the shapes of tensors.
    """

    features: str
    rate: float | None
    operator: str
    entry: str
    tail: tuple[NodeProto, ...]


def find_last_layer(graph: GraphProto, tensor: str) -> LastLayer:
    """Walk back from the class scores to the layer with constant weights that makes them.

    Raises
    ------
    InvalidConfig
        If there is none, or the scores depend on anything beside it.
    """
    layers, tail = _walk_back(graph, tensor)
    if len(layers) != 1:
        raise _not_alone(layers) if layers else _refused("they do not depend on what is fed")
    ((place, entry),) = layers.items()
    producers = producers_of(graph)
    before = producers.get(entry)
    features = before.input[0] if before is not None and is_dropout(before) else entry
    return LastLayer(
        features=features,
        rate=_rate_before(entry, producers, SmallConstants(graph)),
        operator=graph.node[place].op_type,
        entry=entry,
        tail=tuple(graph.node[index] for index in sorted({place, *tail})),
    )


def _walk_back(graph: GraphProto, tensor: str) -> tuple[dict[int, str], set[int]]:
    """Return the layers that the scores come from, each with its input, and what follows them."""
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
        entry = _entry(node, graph, varying)
        if entry is not None:
            layers[place] = entry
            continue
        _refuse_operator(node)
        tail.add(place)
        if not _is_shape(node):  # only the number of rows is asked for
            waiting.extend(node.input)
    return layers, tail


def _entry(node: NodeProto, graph: GraphProto, varying: set[str]) -> str | None:
    try:
        return features_of(node, graph, varying)
    except HasNoFeatures as error:
        raise _refused(f"they are made by {operator(node)}, {error}") from None


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
