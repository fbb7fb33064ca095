"""Which nodes of a graph its outputs need."""

from collections.abc import Iterable, Iterator

from onnx import AttributeProto, GraphProto, NodeProto


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the graphs in a node's attributes: the branches of an If, the body of a Loop."""
    yield from graphs_of(node.attribute)


def graphs_of(attributes: Iterable[AttributeProto]) -> Iterator[GraphProto]:
    """Yield the graphs among attributes, independent of their declared type."""
    for attribute in attributes:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def used_names(node: NodeProto) -> Iterator[str]:
    """Yield every name a node may read, including those its subgraphs read from outside."""
    yield from node.input
    for subgraph in subgraphs(node):
        for output in subgraph.output:
            yield output.name
        for inner in subgraph.node:
            yield from used_names(inner)


def upstream(graph: GraphProto, tensors: Iterable[str]) -> set[int]:
    """Return the indices of the nodes of the main graph that the tensors depend on."""
    producers = {
        name: index for index, node in enumerate(graph.node) for name in node.output if name
    }
    waiting = list(tensors)
    needed: set[int] = set()
    while waiting:
        index = producers.get(waiting.pop())
        if index is not None and index not in needed:
            needed.add(index)
            waiting.extend(used_names(graph.node[index]))
    return needed


def drop_dead_nodes(graph: GraphProto, *, since: int = 0) -> None:
    """Drop, in place, the nodes from index ``since`` on that no output needs."""
    alive = upstream(graph, [output.name for output in graph.output])
    for index in reversed(range(since, len(graph.node))):
        if index not in alive:
            del graph.node[index]
