"""Which nodes are a layer of constant weights, and which of their inputs holds the features."""

from collections.abc import Sequence

from onnx import GraphProto, NodeProto, TensorProto, helper

from service.graph.softmax import producers_of
from service.graph.versions import DEFAULT_DOMAINS

WHAT_COUNTS = "a Gemm, MatMul or 1x1 Conv with constant weights"


class HasNoFeatures(Exception):
    """A layer whose features do not lie along its rows; the message is the end of a sentence."""


def features_of(node: NodeProto, graph: GraphProto, varying: set[str]) -> str | None:
    """Return the input with the features if the node is such a layer.

    Raises
    ------
    HasNoFeatures
        If it is a layer, but not one of rows of features.
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
            return _of_convolution(node, graph, is_varying)
    return None


def _of_product(node: NodeProto, is_varying: Sequence[bool]) -> str | None:
    if is_varying[:2] == [False, True]:
        raise HasNoFeatures("whose weights stand on the left: rows must be samples")
    return _first(node) if is_varying[:2] == [True, False] else None


def _first(node: NodeProto) -> str:
    name: str = node.input[0]
    return name


def _of_gemm(node: NodeProto, is_varying: Sequence[bool]) -> str | None:
    features = _of_product(node, is_varying)
    if features is not None and any(a.name == "transA" and a.i for a in node.attribute):
        raise HasNoFeatures("which transposes its input: rows must be samples")
    if features is not None and any(is_varying[2:]):
        raise HasNoFeatures("to which something computed is added, as by a residual connection")
    return features


def _of_convolution(node: NodeProto, graph: GraphProto, is_varying: Sequence[bool]) -> str | None:
    if not is_varying[0] or any(is_varying[1:]):
        return None
    kernel = _kernel(node, graph)
    if kernel is None or any(size != 1 for size in kernel):
        size = "x".join(map(str, kernel)) if kernel else "unknown"
        raise HasNoFeatures(f"whose kernel is {size}")
    return _first(node)


def _kernel(node: NodeProto, graph: GraphProto) -> list[int] | None:
    for attribute in node.attribute:
        if attribute.name == "kernel_shape":
            return list(attribute.ints)
    initial = {tensor.name: tensor for tensor in graph.initializer}
    producers, name = producers_of(graph), node.input[1]
    while name not in initial and (maker := producers.get(name)) is not None:
        if maker.op_type == "Constant" and maker.attribute:
            value = helper.get_attribute_value(maker.attribute[0])
            return list(value.dims)[2:] if isinstance(value, TensorProto) else None
        if maker.op_type not in ("Identity", "Cast", "DequantizeLinear") or not maker.input:
            return None
        name = maker.input[0]
    return list(initial[name].dims)[2:] if name in initial else None
