"""Walk through and edit the nodes, names and tensors of a graph."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from howsure.onnx_head.builder import PREFIX
from howsure.onnx_head.liveness import drop_dead_nodes, subgraphs, used_names
from service.errors import InvalidOnnxModel, ModelRule
from service.graph.description import quote

DEFAULT_DOMAINS = ("", "ai.onnx")

Producers: TypeAlias = Mapping[str, NodeProto]


def all_graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield the graph and every graph nested in it."""
    yield graph
    for node in graph.node:
        for subgraph in subgraphs(node):
            yield from all_graphs(subgraph)


def producers_of(graph: GraphProto) -> dict[str, NodeProto]:
    """Return the node that makes each tensor of the main graph."""
    return {name: node for node in graph.node for name in node.output if name}


def operator(node: NodeProto) -> str:
    """Return the node's operator, with its domain unless that is the default one."""
    return node.op_type if node.domain in DEFAULT_DOMAINS else f"{node.domain}.{node.op_type}"


def initial_tensors(graph: GraphProto) -> Iterator[TensorProto]:
    """Yield the initializers of one graph, including the parts of sparse ones."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices


def all_messages(message: Message) -> Iterator[Message]:
    """Yield the message and all messages in it, but nothing inside tensors.

    Listing the fields of a tensor would copy its weights.
    """
    yield message
    if isinstance(message, TensorProto):
        return
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in (value,) if isinstance(value, Message) else value:
                yield from all_messages(inner)


def nested_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Yield every tensor of the file except the dense initializers of the main graph."""
    graph = model.graph
    for part in (*graph.node, *graph.sparse_initializer, *model.functions, *model.training_info):
        yield from (found for found in all_messages(part) if isinstance(found, TensorProto))


def attribute(node: NodeProto, name: str) -> AttributeProto | None:
    """Return the node's attribute of this name."""
    return next((found for found in node.attribute if found.name == name), None)


def keep_outputs(graph: GraphProto, outputs: Sequence[ValueInfoProto]) -> None:
    """Replace the graph's outputs, in place, and drop nodes and weights that are no longer needed.

    ONNX Runtime would also run dead nodes: labels, ZipMaps, a softmax whose logits are read
    instead. Inputs stay, because they are the interface.
    """
    del graph.output[:]
    graph.output.extend(outputs)
    drop_dead_nodes(graph)
    _drop_dead_initializers(graph)


def replace_node(graph: GraphProto, index: int, nodes: Sequence[NodeProto]) -> None:
    """Replace one node by several, in place; nodes of a file are in execution order."""
    del graph.node[index]
    for offset, node in enumerate(nodes):
        graph.node.insert(index + offset, node)


def _drop_dead_initializers(graph: GraphProto) -> None:
    used = {name for node in graph.node for name in used_names(node)}
    used.update(output.name for output in graph.output)
    # In old files an initializer is the default value of the input with the same name.
    used.update(given.name for given in graph.input)
    drop(graph.initializer, lambda tensor: tensor.name not in used)
    drop(graph.sparse_initializer, lambda sparse: sparse.values.name not in used)


def drop(parts: Any, is_dropped: Callable[[Any], bool]) -> None:  # noqa: ANN401 - protobuf's lists
    """Drop some of the messages in a list of another, in place."""
    for index in reversed(range(len(parts))):
        if is_dropped(parts[index]):
            del parts[index]


NOISE_PREFIX = f"{PREFIX}noise_"
FRONT = "user."


class _Named(Protocol):
    name: str


def free_reserved_names(graph: GraphProto) -> None:
    """Add the prefix ``user.``, in place, to every value whose name starts with ``howsure_``.

    Such names occur if a calibrated model is uploaded again. A graph input is refused instead,
    because callers use its name.
    """
    for given in graph.input:
        if given.name.startswith(PREFIX):
            raise InvalidOnnxModel.because(
                ModelRule.RESERVED_NAME,
                f"input {quote(given.name)}: names starting with {PREFIX!r} are reserved",
            )
    names = set(value_names(graph))
    reserved = {name for name in names if name.startswith(PREFIX)}
    if not reserved:
        return
    front = FRONT
    while any(name.startswith(front) for name in names):
        front += FRONT
    rename_values(graph, {name: front + name for name in reserved})


def output_names_as_sent(graph: GraphProto) -> dict[str, str]:
    """Return the names of outputs before `free_reserved_names`, by their present names."""
    names = (output.name for output in graph.output)
    return {
        name: name[name.index(PREFIX) :]
        for name in names
        if PREFIX in name and not name[: name.index(PREFIX)].replace(FRONT, "")
    }


def value_names(graph: GraphProto) -> Iterator[str]:
    """Yield the name of every value defined in the graph or in nested graphs."""
    for inner in all_graphs(graph):
        yield from (value.name for value in inner.input)
        yield from (tensor.name for tensor in initial_tensors(inner))
        for node in inner.node:
            yield from node.output


def rename_values(graph: GraphProto, new_names: Mapping[str, str]) -> None:
    """Rename values, in place, in the graph and in nested graphs."""
    for inner in all_graphs(graph):
        for node in inner.node:
            node.input[:] = [new_names.get(name, name) for name in node.input]
            node.output[:] = [new_names.get(name, name) for name in node.output]
        for value in _named(inner):
            if value.name in new_names:
                value.name = new_names[value.name]
        # Runtimes ignore these annotations, which contain names.
        inner.ClearField("quantization_annotation")


def _named(graph: GraphProto) -> Iterator[_Named]:
    yield from graph.input
    yield from graph.output
    yield from graph.value_info
    yield from initial_tensors(graph)
