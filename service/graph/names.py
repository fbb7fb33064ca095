"""Keeping the names of our own tensors free of the caller's."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from onnx import GraphProto

from service.errors import InvalidOnnxModel
from service.graph.quote import quote
from service.graph.walk import all_graphs, initial_tensors
from service.model_rules import ModelRule

PREFIX = "howsure_"
FRONT = "user."


class _Named(Protocol):
    name: str


def free_reserved_names(graph: GraphProto) -> None:
    """Rename, in place, every value that starts with ``howsure_``: ``user.`` goes in front.

    It happens when a calibrated model is uploaded again. A graph input is refused instead: its
    name is what callers send.
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
    """Return the names that outputs had before `free_reserved_names`, by those they have."""
    names = (output.name for output in graph.output)
    return {
        name: name[name.index(PREFIX) :]
        for name in names
        if PREFIX in name and not name[: name.index(PREFIX)].replace(FRONT, "")
    }


def value_names(graph: GraphProto) -> Iterator[str]:
    """Yield the name of every value that the graph or one nested in it defines."""
    for inner in all_graphs(graph):
        yield from (value.name for value in inner.input)
        yield from (tensor.name for tensor in initial_tensors(inner))
        for node in inner.node:
            yield from node.output


def rename_values(graph: GraphProto, new_names: Mapping[str, str]) -> None:
    """Give values other names, in place, in the graph and in those nested in it."""
    for inner in all_graphs(graph):
        for node in inner.node:
            node.input[:] = [new_names.get(name, name) for name in node.input]
            node.output[:] = [new_names.get(name, name) for name in node.output]
        for value in _named(inner):
            if value.name in new_names:
                value.name = new_names[value.name]
        del inner.quantization_annotation[:]  # runtimes ignore these notes, which repeat names


def _named(graph: GraphProto) -> Iterator[_Named]:
    yield from graph.input
    yield from graph.output
    yield from graph.value_info
    yield from initial_tensors(graph)
