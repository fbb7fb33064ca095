"""An ONNX model under attack: its logits, their gradients by the input, and its measures."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper, shape_inference

from howsure.bins_document.pass_plan import PassPlan
from howsure.statistics.measures.gradient import SLOPE_MEASURES
from service.child.onnx.gradient import slopes_of

BATCH = 50
MEASURES = ("jacobian_norm", "gradient_norm", "neg_log_pmax")

Images: TypeAlias = NDArray[np.float32]
Labels: TypeAlias = NDArray[np.int64]
Option: TypeAlias = int | str | list[int]


class BackwardGraph:
    """A model with a second output: the gradient of ``sum(weights * logits)`` by its input."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = shape_inference.infer_shapes(model)
        self._graph = self._model.graph
        values = (*self._graph.input, *self._graph.value_info, *self._graph.output)
        self._sizes = {
            value.name: [one.dim_value for one in value.type.tensor_type.shape.dim]
            for value in values
        }
        self._count = 0

    def build(self) -> onnx.ModelProto:
        """Return the model; it takes ``weights`` and also answers ``gradient``."""
        logits = self._graph.output[0]
        weights = helper.make_tensor_value_info("weights", 1, ["N", self._sizes[logits.name][1]])
        gradient = "weights"
        for node in reversed([one for one in self._graph.node if one.op_type != "Constant"]):
            gradient = self._through(node, gradient)
        self._add("Identity", [gradient], output="gradient")
        self._graph.input.append(weights)
        self._graph.output.append(helper.make_tensor_value_info("gradient", 1, None))
        return self._model

    def _add(self, kind: str, inputs: list[str], output: str = "", **options: Option) -> str:
        self._count += 1
        output = output or f"backward_{self._count}"
        self._graph.node.append(helper.make_node(kind, inputs, [output], **options))
        return output

    def _constant(self, values: list[float]) -> str:
        self._count += 1
        array = numpy_helper.from_array(np.array(values, np.float32), f"constant_{self._count}")
        self._graph.initializer.append(array)
        return array.name

    def _through(self, node: onnx.NodeProto, gradient: str) -> str:
        """Return the gradient by the first input of a node."""
        kind, source, result = node.op_type, node.input[0], node.output[0]
        options = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        if kind == "Sub":
            return gradient
        if kind == "Conv":
            return self._through_convolution(node, gradient, options)
        if kind == "MaxPool" and options["strides"] == options["kernel_shape"]:
            return self._through_maximum(source, result, gradient, options["strides"])
        inputs = {
            "Div": lambda: ("Div", node.input[1]),
            "Gemm": lambda: ("MatMul", node.input[1]),  # the exporters write it with transB
            "Reshape": lambda: ("Reshape", self._add("Shape", [source])),
            "Flatten": lambda: ("Reshape", self._add("Shape", [source])),
            "Relu": lambda: ("Mul", self._add("Sign", [result])),
        }
        if kind not in inputs or options.get("transB") == 0:
            raise SystemExit(f"no gradient of {kind} nodes")
        backward, other = inputs[kind]()
        return self._add(backward, [gradient, other])

    def _through_convolution(
        self, node: onnx.NodeProto, gradient: str, options: dict[str, Any]
    ) -> str:
        pads, strides, kernel = (options[name] for name in ("pads", "strides", "kernel_shape"))
        before, after = self._sizes[node.input[0]][2:], self._sizes[node.output[0]][2:]
        full = [(after[axis] - 1) * strides[axis] + kernel[axis] for axis in (0, 1)]
        lacking = [before[axis] + pads[axis] + pads[axis + 2] - full[axis] for axis in (0, 1)]
        return self._add(
            "ConvTranspose",
            [gradient, node.input[1]],
            pads=pads,
            strides=strides,
            output_padding=lacking,
        )

    def _through_maximum(self, source: str, result: str, gradient: str, strides: list[int]) -> str:
        scales = self._constant([1, 1, *strides])
        is_largest = self._add("Equal", [source, self._repeat(result, scales)])
        mask = self._add("Cast", [is_largest], to=1)
        # Equal values, as of a plain background, share the gradient.
        share = self._add("AveragePool", [mask], kernel_shape=strides, strides=strides)
        n_values = self._constant([strides[0] * strides[1]])
        shared = self._add("Div", [gradient, self._add("Mul", [share, n_values])])
        return self._add("Mul", [self._repeat(shared, scales), mask])

    def _repeat(self, values: str, scales: str) -> str:
        options = {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
        return self._add("Resize", [values, "", scales], mode="nearest", **options)


@dataclass(frozen=True)
class Attacked:
    """A model, the range of its inputs, and the measures of images."""

    session: onnxruntime.InferenceSession
    least: float
    most: float
    plan: PassPlan

    def run(self, output: str, images: Images, weights: Images | None = None) -> Images:
        """Return the logits, or the gradient, batch by batch."""
        name = self.session.get_inputs()[0].name
        n_classes = self.session.get_outputs()[0].shape[1]
        beside = np.zeros((len(images), n_classes), np.float32) if weights is None else weights
        parts = [
            self.session.run(
                [output], {name: images[at : at + BATCH], "weights": beside[at : at + BATCH]}
            )[0]
            for at in range(0, len(images), BATCH)
        ]
        return np.concatenate(parts)

    def logits(self, images: Images) -> Images:
        """Return the logits."""
        return self.run(self.session.get_outputs()[0].name, images)

    def errs(self, images: Images, labels: Labels) -> NDArray[np.bool_]:
        """Return which images the model gets wrong."""
        return np.asarray(self.logits(images).argmax(axis=1) != labels)

    def margin_gradient(self, images: Images, labels: Labels) -> tuple[Images, NDArray[np.float32]]:
        """Return the gradient of the label's logit less the largest other one, and their margin."""
        logits, rows = self.logits(images), np.arange(len(images))
        others = logits.copy()
        others[rows, labels] = -np.inf
        other = others.argmax(axis=1)
        weights = np.zeros_like(logits)
        weights[rows, labels], weights[rows, other] = 1.0, -1.0
        gradient = self.run("gradient", images, weights).reshape(images.shape)
        return gradient, logits[rows, labels] - logits[rows, other]

    def measures(self, images: Images) -> dict[str, NDArray[np.float64]]:
        """Return each measure as a calibration computes it."""
        name = self.session.get_inputs()[0].name
        found: dict[str, list[NDArray[np.float64]]] = {measure: [] for measure in MEASURES}
        for at in range(0, len(images), BATCH):
            rows = {name: images[at : at + BATCH]}
            slopes = slopes_of(
                rows,
                self.plan,
                lambda fed: self.logits(fed[name]).astype(np.float64),
                list(SLOPE_MEASURES),
            )
            for measure, values in slopes.items():
                norm = SLOPE_MEASURES[measure].norm
                found[measure].append(norm(values, exact=not self.plan.divisible))
            logits = self.logits(rows[name]).astype(np.float64)
            top = logits.max(axis=1, keepdims=True)
            found["neg_log_pmax"].append(np.log(np.exp(logits - top).sum(axis=1)))
        return {measure: np.concatenate(parts) for measure, parts in found.items()}
