"""How many nodes ONNX Runtime would make of a model: each call is replaced by what it calls."""

from onnx import ModelProto

from service.graph.gate.functions import Body, Key, body_of, check_functions, own_functions
from service.graph.gate.parts import too_many_nodes

MAX_NODES = 50_000


def check_nodes(model: ModelProto, *, max_nodes: int) -> None:
    """Refuse a model of more nodes, counted without making any.

    Thirty functions that each call the one before twice are 2 KB, and a thousand million nodes.

    Raises
    ------
    InvalidOnnxModel
        If it has more, or its functions are none that end.
    """
    counts: dict[Key, int] = {}
    for key, body in check_functions(model):
        counts[key] = _count(body, counts, most=max_nodes)
    if _count(body_of(model.graph.node, own_functions(model)), counts, most=max_nodes) > max_nodes:
        raise too_many_nodes(max_nodes)


def _count(body: Body, counts: dict[Key, int], *, most: int) -> int:
    called = sum(times * counts[key] for key, times in body.calls.items())
    return min(body.n_nodes + called, most + 1)
