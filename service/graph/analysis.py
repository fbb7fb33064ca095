"""Constants, tensors that vary between runs, and types of the tensors of a graph."""

import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    helper,
    numpy_helper,
    shape_inference,
)

from howsure.onnx_head.liveness import used_names
from service.graph.gate.versions import MAX_IR_VERSION
from service.graph.proto import DEFAULT_DOMAINS, NOISE_PREFIX, attribute, producers_of

HAND_ON = frozenset(("Identity", "Cast"))
LARGEST_READ = 1024  # values; a ratio, a shape

RANDOM = frozenset(
    (
        *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        *("Bernoulli", "Multinomial"),
    )
)


class SmallConstants:
    """Reads short constants of a graph, a ratio or a shape, from an index built once."""

    def __init__(self, graph: GraphProto) -> None:
        self._initial = {tensor.name: tensor for tensor in graph.initializer}
        self._producers = producers_of(graph)

    def read(self, name: str) -> NDArray[np.generic] | None:
        """Return the values of a tensor, or None if it is not a short constant."""
        value = self._find(name, HAND_ON)
        return None if value is None else _array(value)

    def shape(self, name: str) -> list[int] | None:
        """Return the sizes of constant weights, quantised or not; None if they are unknown."""
        value = self._find(name, HAND_ON | {"DequantizeLinear"})
        return list(value.dims) if isinstance(value, TensorProto) else None

    def _find(self, name: str, hand_on: frozenset[str]) -> object | None:
        passed: set[str] = set()
        while name not in self._initial:
            node = self._producers.get(name)
            if node is None or node.domain not in DEFAULT_DOMAINS or name in passed:
                return None
            passed.add(name)
            if node.op_type == "Constant" and node.attribute:
                value: object = helper.get_attribute_value(node.attribute[0])
                return value
            if node.op_type not in hand_on or not node.input:
                return None
            name = node.input[0]
        found: TensorProto = self._initial[name]
        return found


def varying_tensors(graph: GraphProto) -> set[str]:
    """Return the tensors that depend on a graph input, noise excluded, or on a random operator."""
    initial = {tensor.name for tensor in graph.initializer}
    initial.update(sparse.values.name for sparse in graph.sparse_initializer)
    inputs = (given.name for given in graph.input if not given.name.startswith(NOISE_PREFIX))
    drawn = (name for node in graph.node if node.op_type in RANDOM for name in node.output)
    return downstream(graph, {*inputs, *drawn} - initial - {""})


def downstream(graph: GraphProto, tensors: Iterable[str]) -> set[str]:
    """Return these tensors and all that depend on one of them."""
    readers: dict[str, list[int]] = {}
    for index, node in enumerate(graph.node):
        for name in used_names(node):
            readers.setdefault(name, []).append(index)
    found = set(tensors)
    waiting = list(found)
    while waiting:
        for index in readers.pop(waiting.pop(), ()):
            made = {name for name in graph.node[index].output if name} - found
            found |= made
            waiting.extend(made)
    return found


def _array(value: object) -> NDArray[np.generic] | None:
    if not isinstance(value, TensorProto):
        array = np.asarray(value)
        return array if array.dtype.kind in "fi" else None
    if value.data_location == TensorProto.EXTERNAL or value.data_type == TensorProto.STRING:
        return None
    if _count(value) > LARGEST_READ:
        return None
    try:
        return numpy_helper.to_array(value)
    except (ValueError, TypeError):  # a damaged tensor: ONNX Runtime will refuse it
        return None


SMALL_VALUES = 64  # e.g. of a shape, on which the output of a Reshape depends


def tensor_types(graph: GraphProto, opset: int) -> dict[str, TypeProto]:
    """Return the types that can be inferred; those after operators of other domains may be missing.

    Inference uses a copy without weights, which are replaced by their types and shapes.
    """
    model = ModelProto(ir_version=MAX_IR_VERSION)
    domains = {node.domain for node in graph.node if node.domain not in DEFAULT_DOMAINS}
    model.opset_import.append(helper.make_opsetid("", opset))
    model.opset_import.extend(helper.make_opsetid(domain, 1) for domain in sorted(domains))
    _copy_without_weights(graph, model.graph)
    try:
        seen = shape_inference.infer_shapes(model, data_prop=True).graph
    except (RuntimeError, ValueError):  # ONNX Runtime reports the problem better
        return {}
    values = (*seen.input, *seen.value_info, *seen.output)
    return {value.name: value.type for value in values if value.type.tensor_type.elem_type}


def _copy_without_weights(graph: GraphProto, copy: GraphProto) -> None:
    copy.input.extend(graph.input)
    copy.value_info.extend(graph.value_info)
    copy.output.extend(graph.output)
    given = {value.name for value in graph.input}
    for name, tensor in _weights(graph):
        if tensor.data_location != TensorProto.EXTERNAL and _count(tensor) <= SMALL_VALUES:
            small = copy.initializer.add()
            small.CopyFrom(tensor)
            small.name = name
        elif name not in given:
            kind, shape = tensor.data_type, list(tensor.dims)
            copy.input.append(helper.make_tensor_value_info(name, kind, shape))
    copy.node.extend(node for node in graph.node if _constant_value(node) is None)


def _weights(graph: GraphProto) -> Iterator[tuple[str, TensorProto]]:
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        value = _constant_value(node)
        if value is not None:
            yield node.output[0], value


def _constant_value(node: NodeProto) -> TensorProto | None:
    if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS and len(node.output) == 1:
        found = attribute(node, "value")
        if found is not None and found.HasField("t"):
            value: TensorProto = found.t
            return value
    return None


def _count(tensor: TensorProto) -> int:
    return math.prod(max(size, 0) for size in tensor.dims)
