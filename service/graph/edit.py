"""Changing what a graph gives out."""

from collections.abc import Sequence

from onnx import GraphProto, NodeProto, ValueInfoProto

from service.graph.walk import upstream, used_names


def keep_outputs(graph: GraphProto, outputs: Sequence[ValueInfoProto]) -> None:
    """Make these the graph's outputs, in place, and drop all that nothing needs any more.

    ONNX Runtime runs dead nodes too: labels, ZipMaps, a softmax whose logits are read instead.
    Inputs stay, used or not, for they are the interface.
    """
    del graph.output[:]
    graph.output.extend(outputs)
    drop_dead_nodes(graph)
    _drop_dead_initializers(graph)


def drop_dead_nodes(graph: GraphProto, *, since: int = 0) -> None:
    """Drop, in place, the nodes from this place on that no output needs."""
    alive = upstream(graph, [output.name for output in graph.output])
    for index in reversed(range(since, len(graph.node))):
        if index not in alive:
            del graph.node[index]


def replace_node(graph: GraphProto, index: int, nodes: Sequence[NodeProto]) -> None:
    """Put nodes in the place of one, in place: a file's nodes stand in the order they run in."""
    del graph.node[index]
    for offset, node in enumerate(nodes):
        graph.node.insert(index + offset, node)


def _drop_dead_initializers(graph: GraphProto) -> None:
    used = {name for node in graph.node for name in used_names(node)}
    used.update(output.name for output in graph.output)
    # In old files an initializer is the default of an input of the same name.
    used.update(given.name for given in graph.input)
    for index in reversed(range(len(graph.initializer))):
        if graph.initializer[index].name not in used:
            del graph.initializer[index]
    for index in reversed(range(len(graph.sparse_initializer))):
        if graph.sparse_initializer[index].values.name not in used:
            del graph.sparse_initializer[index]
