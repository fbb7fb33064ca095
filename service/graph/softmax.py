"""Finding the softmax or sigmoid that makes an output, to read its input instead.

Logits keep the tails that probabilities lose: next to a probability of 1 a float32 ``1 - p`` has
steps of 6e-8. What is found here is a candidate; `choose` confirms it on real rows, and so
settles axes, reshapes and whatever else the nodes on the way may do.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from onnx import GraphProto, NodeProto

from service.graph.versions import DEFAULT_DOMAINS

# They hand on the values of their first input, or do so for the softmax's values.
STANDARD_PASSES = frozenset(
    ("Identity", "Cast", "Squeeze", "Flatten", "Reshape", "Unsqueeze", "Dropout")
)
LEARNING_PASSES = frozenset(("ZipMap", "Normalizer"))

Producers = Mapping[str, NodeProto]


@dataclass(frozen=True)
class Hook:
    """Logits behind an output: see `OutputChoice` for the meaning of the last two fields."""

    tensor: str
    positive_column: int | None = None
    raw: bool = False


def producers_of(graph: GraphProto) -> dict[str, NodeProto]:
    """Return the node that makes each tensor of the main graph."""
    return {name: node for node in graph.node for name in node.output if name}


def operator(node: NodeProto) -> str:
    """Return the node's operator, with its domain unless that is the default one."""
    return node.op_type if node.domain in DEFAULT_DOMAINS else f"{node.domain}.{node.op_type}"


def trace(tensor: str, producers: Producers) -> list[str]:
    """Return the tensor and those before it whose values it hands on, the earliest last."""
    path = {tensor: None}  # a set that keeps its order
    while (node := producers.get(tensor)) is not None and _passes(node) and node.input:
        tensor = node.input[0]
        if tensor in path:  # a cycle: ONNX Runtime will refuse the model
            break
        path[tensor] = None
    return list(path)


def find_hook(tensor: str, producers: Producers) -> Hook | None:
    """Return the logits from which the tensor seems to be made."""
    source = trace(tensor, producers)[-1]
    node = producers.get(source)
    if node is None or not node.input:
        return None
    match operator(node):
        case "Softmax" | "LogSoftmax":
            return Hook(node.input[0])
        case "Sigmoid":
            return Hook(node.input[0], positive_column=0)
        case "Concat":
            return _complement_pair(node, producers)
        case "ai.onnx.ml.LinearClassifier" | "ai.onnx.ml.TreeEnsembleClassifier":
            return _classifier(node, source)
    return None


def _passes(node: NodeProto) -> bool:
    if node.domain in DEFAULT_DOMAINS:
        return node.op_type in STANDARD_PASSES
    return node.domain == "ai.onnx.ml" and node.op_type in LEARNING_PASSES


def _complement_pair(concat: NodeProto, producers: Producers) -> Hook | None:
    """Return z where the node joins ``1 - s`` and ``s`` of one ``s = Sigmoid(z)``."""
    if len(concat.input) != 2:  # noqa: PLR2004 - a pair
        return None
    complement, positive = (producers.get(name) for name in concat.input)
    if complement is None or positive is None or not positive.input:
        return None
    if operator(complement) != "Sub" or operator(positive) != "Sigmoid":
        return None
    if list(complement.input[1:]) != [concat.input[1]]:
        return None
    return Hook(positive.input[0], positive_column=0)


def _classifier(node: NodeProto, source: str) -> Hook | None:
    if len(node.output) != 2 or source != node.output[1]:  # noqa: PLR2004 - label and scores
        return None
    match _post_transform(node):
        case b"SOFTMAX":
            return Hook(source, raw=True)
        case b"LOGISTIC":
            # Without the logistic function the two columns hold -z (or nothing of use) and z.
            return Hook(source, positive_column=1, raw=True)
    return None


def _post_transform(node: NodeProto) -> bytes:
    for attribute in node.attribute:
        if attribute.name == "post_transform":
            transform: bytes = attribute.s
            return transform
    return b"NONE"
