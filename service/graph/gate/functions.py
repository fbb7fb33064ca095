"""Checks of a model's functions: each is defined once, and none calls itself."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from onnx import ModelProto, NodeProto

from howsure.onnx_head.liveness import graphs_of
from service.errors import InvalidOnnxModel, ModelRule
from service.graph.description import quote
from service.graph.gate.size import too_many_nodes
from service.graph.inline import all_nodes
from service.graph.proto import DEFAULT_DOMAINS

# ONNX Runtime calls itself for each level; modules in modules make about ten.
MAX_CALL_DEPTH = 64

Key: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class Body:
    """The number of nodes in a function or graph, and the number of calls of each function."""

    n_nodes: int
    calls: Mapping[Key, int]


def key_of(domain: str, name: str, overload: str) -> Key:
    """Return the key that identifies a function in its definition and in calls."""
    return ("" if domain in DEFAULT_DOMAINS else domain, name, overload)


def own_functions(model: ModelProto) -> set[Key]:
    """Return the keys of the functions defined in the file."""
    return {key_of(f.domain, f.name, f.overload) for f in model.functions}


def body_of(nodes: Iterable[NodeProto], own: set[Key]) -> Body:
    """Count nodes and calls, including those in branches and loops."""
    counted = Counter(key_of(n.domain, n.op_type, n.overload) for n in all_nodes(nodes))
    return Body(counted.total(), {key: counted[key] for key in counted.keys() & own})


def check_functions(model: ModelProto) -> list[tuple[Key, Body]]:
    """Return the functions, each after those that it calls.

    Raises
    ------
    InvalidOnnxModel
        If a function is defined twice, calls itself directly or indirectly, calls are nested too
        deeply, or a function takes a graph, which it could contain any number of times.
    """
    own = own_functions(model)
    if len(own) < len(model.functions):
        raise InvalidOnnxModel.because(
            ModelRule.FUNCTION_TWICE,
            "two of its functions have the same domain, name and overload; leave out one of them",
        )
    _refuse_graphs(model, own)
    bodies = {key_of(f.domain, f.name, f.overload): body_of(f.node, own) for f in model.functions}
    calls = {key: body.calls for key, body in bodies.items()}
    depths: dict[Key, int] = {}
    try:
        for key in TopologicalSorter(calls).static_order():
            depths[key] = max((depths[called] + 1 for called in calls[key]), default=0)
    except CycleError as error:
        name = quote(min(error.args[1])[1])
        raise InvalidOnnxModel.because(
            ModelRule.FUNCTION_CALLS_ITSELF,
            f"function {name} calls itself, or one that does; export it without local functions",
        ) from None
    if max(depths.values(), default=0) > MAX_CALL_DEPTH:
        raise InvalidOnnxModel.because(
            ModelRule.TOO_DEEP,
            f"its functions call one another more than {MAX_CALL_DEPTH} deep; export it without "
            "local functions",
        )
    return [(key, bodies[key]) for key in depths]


def _refuse_graphs(model: ModelProto, own: set[Key]) -> None:
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    taking = [
        node.op_type
        for node in all_nodes(nodes)
        if key_of(node.domain, node.op_type, node.overload) in own
        and any(graphs_of(node.attribute))
    ]
    taking += [f.name for f in model.functions if any(graphs_of(f.attribute_proto))]
    if taking:
        raise InvalidOnnxModel.because(
            ModelRule.FUNCTION_TAKES_GRAPH,
            f"its function {quote(taking[0])} is given a graph as an attribute; export it without "
            "local functions",
        )


MAX_NODES = 50_000


def check_nodes(model: ModelProto, *, max_nodes: int) -> None:
    """Refuse a model with more nodes; nodes are counted without inlining functions.

    Thirty functions that each call the previous one twice take 2 KB and make 10**9 nodes.

    Raises
    ------
    InvalidOnnxModel
        If it has more nodes, or its functions do not end.
    """
    counts: dict[Key, int] = {}
    for key, body in check_functions(model):
        counts[key] = _count(body, counts, most=max_nodes)
    if _count(body_of(model.graph.node, own_functions(model)), counts, most=max_nodes) > max_nodes:
        raise too_many_nodes(max_nodes)


def _count(body: Body, counts: dict[Key, int], *, most: int) -> int:
    called = sum(times * counts[key] for key, times in body.calls.items())
    return min(body.n_nodes + called, most + 1)
