"""Add nodes to a graph at its own opset."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, TensorProto, helper, numpy_helper

from howsure.outputs import OutputKind, Precision
from howsure.statistics.softmax import least_probability

# Of names of tensors.
PREFIX = "howsure_"
# Axes are an attribute before this opset, and an input since.
AXES_INPUT_SINCE = {"ReduceSum": 13, "ReduceMax": 18}

# TopK on CUDA orders equal numbers by column only in rows of at most this width.
STABLE_WIDTH = 256

ELEMENT_TYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}


class GraphBuilder:
    """Appends nodes to a graph, in place; tensors are identified by name.

    Constants are nodes, because in IR 3 every initializer must also be an input. Nodes have no
    names, because ONNX Runtime refuses duplicates. ``stem`` separates the tensor names of several
    builders.
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
        """Append a node and return its output, with the given name or a new one."""
        name = output or self.new_name()
        node = self._graph.node.add(op_type=operator, input=inputs, output=[name])
        node.attribute.extend(helper.make_attribute(key, attributes[key]) for key in attributes)
        return name

    def top(self, scores: str, n_top: int, n_columns: int) -> tuple[str, str]:
        """Return the largest scores of each row and their columns, equal ones from the left.

        NaN and -inf are below all numbers, and equal.
        """
        # TopK on CUDA pads rows with the lowest number, which would be preferred to -inf.
        lowest = self.number(np.nextafter(np.finfo(self._dtype).min, 0, dtype=self._dtype))
        keys = self.add("Where", self.add("Greater", scores, lowest), scores, lowest)
        columns = None
        while n_columns > STABLE_WIDTH and 2 * n_top <= STABLE_WIDTH:
            keys, found, n_columns = self._top_of_blocks(keys, n_top, n_columns)
            columns = self._picked(columns, found) if columns else found
        found = self._largest_of(keys, n_top)[1]
        columns = self._picked(columns, found) if columns else found
        return self._picked(scores, columns), columns

    def decided(self, scores: str, kind: OutputKind, threshold: float) -> tuple[str, str]:
        """Return the scores of two classes and their columns, those of the predicted one first.

        The rule is that of `howsure.statistics.softmax.decision_scores`. It is computed in float64,
        so that records and predictions agree at the threshold.
        """
        least = least_probability(threshold)
        wide = self.add("Cast", scores, to=TensorProto.DOUBLE)
        if kind == "logits":
            lowered = np.array([[0.0, np.log(least) - np.log1p(-least)]])
            keys = self.add("Sub", wide, self.constant(lowered))
        else:
            keys = self.add("Mul", wide, self.constant(np.array([[least, 1.0 - least]])))
        is_0 = self.add("Less", self.columns(keys, 1, 2), self.columns(keys, 0, 1))
        second = self.add("Cast", is_0, to=TensorProto.INT64)
        first = self.add("Sub", self.integers([1]), second)
        columns = self.add("Concat", first, second, axis=1)
        return self._picked(scores, columns), columns

    def number(self, value: float) -> str:
        """Return a scalar in the head's precision."""
        return self._constant(np.array(value, dtype=self._dtype))

    def numbers(self, values: NDArray[np.floating]) -> str:
        """Return an array in the head's precision."""
        return self._constant(values.astype(self._dtype))

    def integers(self, values: Sequence[int]) -> str:
        """Return a vector of int64."""
        return self._constant(np.array(values, dtype=np.int64))

    def columns(self, matrix: str, start: int, stop: int) -> str:
        """Return ``matrix[:, start:stop]``."""
        bounds = (self.integers([start]), self.integers([stop]), self.integers([1]))
        return self.add("Slice", matrix, *bounds)

    def row_sums(self, matrix: str, *, keepdims: int = 1) -> str:
        """Return the sum of each row, shape (n, 1), or (n,) without ``keepdims``."""
        return self._reduced("ReduceSum", matrix, [1], keepdims=keepdims)

    def sums(self, values: str, axes: Sequence[int]) -> str:
        """Return sums along these axes, which are kept with size 1."""
        return self._reduced("ReduceSum", values, axes)

    def largest(self, values: str, axes: Sequence[int]) -> str:
        """Return maxima along these axes, which are kept with size 1."""
        return self._reduced("ReduceMax", values, axes)

    def constant(self, values: NDArray[np.generic]) -> str:
        """Return an array as a constant."""
        return self.add("Constant", value=numpy_helper.from_array(values))

    def new_name(self) -> str:
        """Return a new tensor name."""
        self._count += 1
        return f"{PREFIX}{self._stem}{self._count}"

    def _top_of_blocks(self, keys: str, n_top: int, n_columns: int) -> tuple[str, str, int]:
        """Return the largest keys of each block of columns, their columns, and their number."""
        n_blocks = -(-n_columns // STABLE_WIDTH)
        size = -(-n_columns // n_blocks)
        if missing := n_blocks * size - n_columns:
            below_all = self.number(float(np.finfo(self._dtype).min))
            keys = self.add("Pad", keys, self.integers([0, 0, 0, missing]), below_all)
        blocks = self.add("Reshape", keys, self.integers([-1, size]))
        row = self.integers([-1, n_blocks * n_top])
        largest, found = (self.add("Reshape", x, row) for x in self._largest_of(blocks, n_top))
        firsts = [size * block for block in range(n_blocks) for _ in range(n_top)]
        return largest, self.add("Add", found, self.integers(firsts)), n_blocks * n_top

    def _largest_of(self, keys: str, n_top: int) -> tuple[str, str]:
        values, columns = self.new_name(), self.new_name()
        node = helper.make_node(
            "TopK", [keys, self.integers([n_top])], [values, columns], axis=1, sorted=1
        )
        self._graph.node.append(node)
        return values, columns

    def _picked(self, matrix: str, columns: str) -> str:
        return self.add("GatherElements", matrix, columns, axis=1)

    def _reduced(
        self, operator: str, values: str, axes: Sequence[int], *, keepdims: int = 1
    ) -> str:
        if self.opset < AXES_INPUT_SINCE[operator]:
            return self.add(operator, values, axes=axes, keepdims=keepdims)
        return self.add(operator, values, self.integers(axes), keepdims=keepdims)

    def _constant(self, values: NDArray[np.generic]) -> str:
        key = (f"{values.dtype}{values.shape}", values.tobytes())
        if key not in self._constants:
            self._constants[key] = self.constant(values)
        return self._constants[key]


def log1p(build: GraphBuilder, y: str) -> str:
    """Return log(1 + y) for y >= 0, exact to a few units in the last place.

    ``u = 1 + y`` is rounded, and ``(y - (u - 1)) / u`` corrects this to first order, with an error
    below the square of the rounding. ``Softplus`` cannot be used: on CUDA it is
    ``log(exp(a) + 1)``, which is zero below 1e-7.
    """
    one = build.number(1)
    u = build.add("Add", y, one)
    lost = build.add("Sub", y, build.add("Sub", u, one))
    return build.add("Add", build.add("Log", u), build.add("Div", lost, u))
