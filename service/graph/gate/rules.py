"""Each value has one producer, and each operator is a known one.

Our lookups return only one producer of a value, and ONNX Runtime may never see the duplicate.
"""

from collections.abc import Iterable, Iterator

from onnx import ModelProto, NodeProto

from howsure.onnx_head.liveness import graphs_of
from service.errors import InvalidOnnxModel, ModelRule
from service.graph.description import quote
from service.graph.gate.functions import key_of, own_functions
from service.graph.inline import all_nodes
from service.graph.proto import DEFAULT_DOMAINS, all_graphs


def check_names_once(model: ModelProto) -> None:
    """Refuse a graph or function with two values of the same name.

    An initializer may have the name of an input, whose default value it is.

    Raises
    ------
    InvalidOnnxModel
        If there are such values.
    """
    for graph in all_graphs(model.graph):
        given = {tensor.name for tensor in graph.initializer}
        given |= {sparse.values.name for sparse in graph.sparse_initializer}
        _check([*given.union(value.name for value in graph.input)], graph.node)
    for function in model.functions:
        _check(function.input, function.node)


def _check(given: Iterable[str], nodes: Iterable[NodeProto]) -> None:
    names = set(given)
    for node in nodes:
        for name in node.output:
            if name and name in names:
                raise InvalidOnnxModel.because(
                    ModelRule.NAME_TWICE,
                    f"the value {quote(name)} is made twice; give each value a name of its own",
                )
            names.add(name)


# Imports of other domains are ignored: ONNX Runtime lists all domains it knows in its files.
DOMAINS = (*DEFAULT_DOMAINS, "ai.onnx.ml", "com.microsoft")
# A program compiled for a device, or the path of one.
REFUSED = frozenset({("com.microsoft", "EPContext")})


def check_operators(model: ModelProto) -> None:
    """Refuse operators of other domains, and operators that hold programs.

    Raises
    ------
    InvalidOnnxModel
        If there is one anywhere in the model.
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
