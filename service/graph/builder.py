"""Adding nodes to a graph at the caller's own opset."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, TensorProto, helper, numpy_helper

from service.graph.description import OutputChoice, Precision
from service.graph.proto import PREFIX

# Axes are an attribute of an operator before, an input since.
SUM_AXES_INPUT_SINCE = 13
MAX_AXES_INPUT_SINCE = 18

ELEMENT_TYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}


class GraphBuilder:
    """Appends nodes to a graph, in place; tensors are known by their names.

    Constants are nodes, for files of IR 3 want every initializer to be an input as well. Nodes
    carry no name: ONNX Runtime refuses two of the same. ``stem`` keeps the tensors of several
    builders apart.
    """

    def __init__(
        self, graph: GraphProto, *, opset: int, precision: Precision, stem: str = "n"
    ) -> None:
        self._graph = graph
        self._dtype = np.dtype(precision)
        self._stem = stem
        self.opset = opset
        self._constants: dict[tuple[str, bytes], str] = {}
        self._count = 0
        self.element_type = ELEMENT_TYPES[precision]

    def add(
        self,
        operator: str,
        *inputs: str,
        output: str | None = None,
        **attributes: int | Sequence[int] | TensorProto,
    ) -> str:
        """Append a node and return its output, under the name given or a new one."""
        name = output or self.new_name()
        node = self._graph.node.add(op_type=operator, input=inputs, output=[name])
        node.attribute.extend(helper.make_attribute(key, attributes[key]) for key in attributes)
        return name

    def top(self, scores: str, n_top: int) -> tuple[str, str]:
        """Return the largest scores of each row and their columns, equal ones from the left."""
        values, columns = self.new_name(), self.new_name()
        self._graph.node.append(
            helper.make_node(
                "TopK", [scores, self.integers([n_top])], [values, columns], axis=1, sorted=1
            )
        )
        return values, columns

    def number(self, value: float) -> str:
        """Return a scalar in the head's precision."""
        return self._constant(np.array(value, dtype=self._dtype))

    def integers(self, values: Sequence[int]) -> str:
        """Return a vector of int64."""
        return self._constant(np.array(values, dtype=np.int64))

    def columns(self, matrix: str, start: int, stop: int) -> str:
        """Return ``matrix[:, start:stop]``."""
        bounds = (self.integers([start]), self.integers([stop]), self.integers([1]))
        return self.add("Slice", matrix, *bounds)

    def row_sums(self, matrix: str, *, keepdims: int = 1) -> str:
        """Return the sum of each row, shape (n, 1), or (n,) where the axis is not kept."""
        return self._reduced(
            "ReduceSum",
            matrix,
            [1],
            axes_input_since=SUM_AXES_INPUT_SINCE,
            keepdims=keepdims,
        )

    def sums(self, values: str, axes: Sequence[int]) -> str:
        """Return sums along these axes, which stay, of size 1."""
        return self._reduced("ReduceSum", values, axes, axes_input_since=SUM_AXES_INPUT_SINCE)

    def largest(self, values: str, axes: Sequence[int]) -> str:
        """Return the largest values along these axes, which stay, of size 1."""
        return self._reduced("ReduceMax", values, axes, axes_input_since=MAX_AXES_INPUT_SINCE)

    def constant(self, values: NDArray[np.generic]) -> str:
        """Return an array as it is."""
        return self.add("Constant", value=numpy_helper.from_array(values))

    def new_name(self) -> str:
        """Return a name that no tensor has."""
        self._count += 1
        return f"{PREFIX}{self._stem}{self._count}"

    def _reduced(
        self,
        operator: str,
        values: str,
        axes: Sequence[int],
        *,
        axes_input_since: int,
        keepdims: int = 1,
    ) -> str:
        if self.opset < axes_input_since:
            return self.add(operator, values, axes=axes, keepdims=keepdims)
        return self.add(operator, values, self.integers(axes), keepdims=keepdims)

    def _constant(self, values: NDArray[np.generic]) -> str:
        key = (f"{values.dtype}{values.shape}", values.tobytes())
        if key not in self._constants:
            self._constants[key] = self.constant(values)
        return self._constants[key]


def log1p(build: GraphBuilder, y: str) -> str:
    """Return log(1 + y) for y >= 0, exact to a few units in the last place.

    ``u = 1 + y`` is rounded, and ``(y - (u - 1)) / u`` makes good for it, to first order: what it
    leaves out is less than the square of the rounding. ``Softplus`` will not do in its place: on
    CUDA it is ``log(exp(a) + 1)``, zero below 1e-7.
    """
    one = build.number(1)
    u = build.add("Add", y, one)
    lost = build.add("Sub", y, build.add("Sub", u, one))
    return build.add("Add", build.add("Log", u), build.add("Div", lost, u))


def class_scores(build: GraphBuilder, tensor: str, choice: OutputChoice) -> str:
    """Return the scores, shape (n, n_classes), in the head's precision.

    Float16 goes up to float32 first. Flatten takes (n,), (n, 1), (n, K) and (n, K, 1, 1) alike.
    Of a binary model's one column, a probability p becomes (1 - p, p) and a logit z (0, z).
    """
    scores = build.add("Flatten", build.add("Cast", tensor, to=build.element_type), axis=1)
    if choice.positive_column is None:
        return scores
    positive = build.columns(scores, choice.positive_column, choice.positive_column + 1)
    if choice.kind == "probabilities":
        other = build.add("Sub", build.number(1), positive)
    else:
        # Zeros of the same shape; 0 * z would be NaN at an infinite z.
        nowhere = build.add("Less", positive, positive)
        other = build.add("Cast", nowhere, to=build.element_type)
    return build.add("Concat", other, positive, axis=1)
