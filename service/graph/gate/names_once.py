"""Each value has one maker.

What looks for the maker of a value would find one of two, and ONNX Runtime is not asked where only
one of them is left in the graphs that are made of the model.
"""

from collections.abc import Iterable

from onnx import ModelProto, NodeProto

from service.errors import InvalidOnnxModel
from service.graph.quote import quote
from service.graph.walk import all_graphs
from service.model_rules import ModelRule


def check_names_once(model: ModelProto) -> None:
    """Refuse a graph or function in which a name is that of two values.

    Raises
    ------
    InvalidOnnxModel
        If one is; of an input that is an initializer as well, that is its default.
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
