"""What does not change from one run of a graph to the next."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, TensorProto, helper, numpy_helper

from service.graph.noise_input import is_noise
from service.graph.softmax import producers_of
from service.graph.versions import DEFAULT_DOMAINS
from service.graph.walk import used_names

HAND_ON = frozenset(("Identity", "Cast"))
LARGEST_READ = 1024  # values; a ratio, a shape

RANDOM = frozenset(
    (
        *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        *("Bernoulli", "Multinomial"),
    )
)


class SmallConstants:
    """Reads the short constants of a graph: a ratio, a shape."""

    def __init__(self, graph: GraphProto) -> None:
        self._initial = {tensor.name: tensor for tensor in graph.initializer}
        self._producers = producers_of(graph)

    def read(self, name: str) -> NDArray[np.generic] | None:
        """Return the values of a tensor, or None if it is no constant, or a long one."""
        passed: set[str] = set()
        while name not in self._initial:
            node = self._producers.get(name)
            if node is None or node.domain not in DEFAULT_DOMAINS or name in passed:
                return None
            passed.add(name)
            if node.op_type == "Constant" and node.attribute:
                return _array(helper.get_attribute_value(node.attribute[0]))
            if node.op_type not in HAND_ON or not node.input:
                return None
            name = node.input[0]
        return _array(self._initial[name])


def varying_tensors(graph: GraphProto) -> set[str]:
    """Return the tensors that follow from what is fed, noise aside, or from a random draw."""
    initial = {tensor.name for tensor in graph.initializer}
    initial.update(sparse.values.name for sparse in graph.sparse_initializer)
    inputs = (given.name for given in graph.input if not is_noise(given.name))
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
    if np.prod([max(size, 0) for size in value.dims], dtype=object) > LARGEST_READ:
        return None
    try:
        return numpy_helper.to_array(value)
    except (ValueError, TypeError):  # a damaged tensor: ONNX Runtime will refuse it
        return None
