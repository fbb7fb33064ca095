"""Operators that a model may use: those that ONNX Runtime brings, and its own functions."""

from collections.abc import Iterator

from onnx import ModelProto, NodeProto

from service.errors import InvalidOnnxModel
from service.graph.gate.functions import key_of, own_functions
from service.graph.inline import all_nodes
from service.graph.quote import quote
from service.graph.versions import DEFAULT_DOMAINS
from service.graph.walk import graphs_of
from service.model_rules import ModelRule

# Imports of other domains say nothing: ONNX Runtime lists all that it knows in what it writes.
DOMAINS = (*DEFAULT_DOMAINS, "ai.onnx.ml", "com.microsoft")
# A program in some device's own language, or the path of one.
REFUSED = frozenset({("com.microsoft", "EPContext")})


def check_operators(model: ModelProto) -> None:
    """Refuse operators of anybody else, and those that hold programs.

    Raises
    ------
    InvalidOnnxModel
        If there is one, wherever it stands.
    """
    own = own_functions(model)
    for node in _everywhere(model):
        if (node.domain, node.op_type) in REFUSED:
            raise _refused(node, "it holds a program that was compiled for one device")
        is_own = key_of(node.domain, node.op_type, node.overload) in own
        if node.domain not in DOMAINS and not is_own:
            raise _refused(node, "it is neither ONNX's nor ONNX Runtime's nor defined in the file")


def _refused(node: NodeProto, why: str) -> InvalidOnnxModel:
    name = quote(f"{node.domain}.{node.op_type}")
    return InvalidOnnxModel.because(
        ModelRule.OPERATOR_NOT_ALLOWED,
        f"operator {name} is not allowed: {why}; export the model with operators of ONNX, "
        "ai.onnx.ml or com.microsoft alone",
    )


def _everywhere(model: ModelProto) -> Iterator[NodeProto]:
    yield from all_nodes(model.graph.node)
    for function in model.functions:
        yield from all_nodes(function.node)
        for graph in graphs_of(function.attribute_proto):
            yield from all_nodes(graph.node)
