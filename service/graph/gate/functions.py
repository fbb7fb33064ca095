"""A model's own functions: each defined once, and none that calls itself."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from onnx import ModelProto, NodeProto

from service.errors import InvalidOnnxModel
from service.graph.inline import all_nodes
from service.graph.quote import quote
from service.graph.versions import DEFAULT_DOMAINS
from service.graph.walk import graphs_of
from service.model_rules import ModelRule

# ONNX Runtime calls itself for each level; modules in modules make about ten.
MAX_CALL_DEPTH = 64

Key: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class Body:
    """What stands in a function or graph: nodes in all, and how often each function is called."""

    n_nodes: int
    calls: Mapping[Key, int]


def key_of(domain: str, name: str, overload: str) -> Key:
    """Return what a call and a function have in common."""
    return ("" if domain in DEFAULT_DOMAINS else domain, name, overload)


def own_functions(model: ModelProto) -> set[Key]:
    """Return the functions that the file defines."""
    return {key_of(f.domain, f.name, f.overload) for f in model.functions}


def body_of(nodes: Iterable[NodeProto], own: set[Key]) -> Body:
    """Count nodes and calls, those in branches and loops included."""
    counted = Counter(key_of(n.domain, n.op_type, n.overload) for n in all_nodes(nodes))
    return Body(counted.total(), {key: counted[key] for key in counted.keys() & own})


def check_functions(model: ModelProto) -> list[tuple[Key, Body]]:
    """Return the functions, each behind those that it calls.

    Raises
    ------
    InvalidOnnxModel
        If one is there twice, calls itself, also by way of others, calls lie too deep in one
        another, or one takes a graph: which could then stand in it any number of times.
    """
    own = own_functions(model)
    if len(own) < len(model.functions):
        raise InvalidOnnxModel.because(
            ModelRule.FUNCTION_TWICE,
            "two of its functions have the same domain, name and overload; leave out one of them",
        )
    _refuse_graphs(model, own)
    bodies = {key_of(f.domain, f.name, f.overload): body_of(f.node, own) for f in model.functions}
    depths = _depths(bodies)
    if len(depths) < len(bodies):
        name = quote(min(bodies.keys() - depths.keys())[1])
        raise InvalidOnnxModel.because(
            ModelRule.FUNCTION_CALLS_ITSELF,
            f"function {name} calls itself, or one that does; export it without local functions",
        )
    if max(depths.values(), default=0) > MAX_CALL_DEPTH:
        raise InvalidOnnxModel.because(
            ModelRule.TOO_DEEP,
            f"its functions call one another more than {MAX_CALL_DEPTH} deep; export it without "
            "local functions",
        )
    return [(key, bodies[key]) for key in depths]


def _depths(bodies: Mapping[Key, Body]) -> dict[Key, int]:
    """Return how deep calls go below each function, in an order in which callers come last.

    Functions that call themselves, and their callers, are left out.
    """
    callers: dict[Key, list[Key]] = {key: [] for key in bodies}
    for key, body in bodies.items():
        for called in body.calls:
            callers[called].append(key)
    left = {key: len(body.calls) for key, body in bodies.items()}
    depths = {key: 0 for key in bodies if not left[key]}
    waiting = deque(depths)
    while waiting:
        key = waiting.popleft()
        for caller in callers[key]:
            left[caller] -= 1
            if not left[caller]:
                # First in, first out: what is known last lies deepest.
                depths[caller] = depths[key] + 1
                waiting.append(caller)
    return depths


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
