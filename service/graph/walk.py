"""Going through the nodes, names and tensors of a graph."""

from collections.abc import Iterable, Iterator

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the graphs a node holds as attributes: the branches of an If, the body of a Loop."""
    yield from graphs_of(node.attribute)


def graphs_of(attributes: Iterable[AttributeProto]) -> Iterator[GraphProto]:
    """Yield the graphs among attributes, whatever they say of their type."""
    for attribute in attributes:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield the graph and every graph nested in it."""
    yield graph
    for node in graph.node:
        for subgraph in subgraphs(node):
            yield from all_graphs(subgraph)


def used_names(node: NodeProto) -> Iterator[str]:
    """Yield every name a node may read, those its subgraphs take from outside included."""
    yield from node.input
    for subgraph in subgraphs(node):
        for output in subgraph.output:
            yield output.name
        for inner in subgraph.node:
            yield from used_names(inner)


def upstream(graph: GraphProto, tensors: Iterable[str]) -> set[int]:
    """Return the places of the nodes of the main graph that the tensors depend on."""
    producers = {
        name: index for index, node in enumerate(graph.node) for name in node.output if name
    }
    waiting = list(tensors)
    found: set[int] = set()
    while waiting:
        index = producers.get(waiting.pop())
        if index is not None and index not in found:
            found.add(index)
            waiting.extend(used_names(graph.node[index]))
    return found


def initial_tensors(graph: GraphProto) -> Iterator[TensorProto]:
    """Yield the initializers of one graph, the parts of the sparse ones included."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices


def nested_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Yield every tensor of the file except the dense initializers of the main graph."""
    for sparse in model.graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices
    for node in model.graph.node:
        yield from _tensors_of_node(node)
    for function in model.functions:
        for node in function.node:
            yield from _tensors_of_node(node)
        for attribute in function.attribute_proto:
            yield from _tensors_of_attribute(attribute)
    for training in model.training_info:
        yield from _tensors_of_graph(training.initialization)
        yield from _tensors_of_graph(training.algorithm)


def _tensors_of_graph(graph: GraphProto) -> Iterator[TensorProto]:
    yield from initial_tensors(graph)
    for node in graph.node:
        yield from _tensors_of_node(node)


def _tensors_of_node(node: NodeProto) -> Iterator[TensorProto]:
    for attribute in node.attribute:
        yield from _tensors_of_attribute(attribute)


def _tensors_of_attribute(attribute: AttributeProto) -> Iterator[TensorProto]:
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    sparse_tensors = list(attribute.sparse_tensors)
    if attribute.HasField("sparse_tensor"):
        sparse_tensors.append(attribute.sparse_tensor)
    for sparse in sparse_tensors:
        yield sparse.values
        yield sparse.indices
    if attribute.HasField("g"):
        yield from _tensors_of_graph(attribute.g)
    for graph in attribute.graphs:
        yield from _tensors_of_graph(graph)
