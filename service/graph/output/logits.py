"""Find the softmax or sigmoid that makes an output, to read its input instead.

Logits preserve tails that probabilities lose: next to a probability of 1 a float32 ``1 - p`` has
steps of 6e-8. This module finds a candidate. `choose` confirms it on real rows, which covers axes,
reshapes and other nodes in between.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto

from howsure.outputs import OutputKind
from service.graph.proto import DEFAULT_DOMAINS, Producers, attribute, operator

# They pass on the values of their first input, at least those of a softmax.
STANDARD_PASSES = frozenset(
    (
        *("Identity", "Cast", "Squeeze", "Flatten", "Reshape", "Unsqueeze", "Dropout"),
        *("QuantizeLinear", "DequantizeLinear"),  # but for rounding, see `quantisation_step`
    )
)
LEARNING_PASSES = frozenset(("ZipMap", "Normalizer"))


@dataclass(frozen=True)
class LogitsSource:
    """Logits behind an output: see `OutputChoice` for the meaning of the last two fields."""

    tensor: str
    positive_column: int | None = None
    raw: bool = False


def trace(tensor: str, producers: Producers) -> list[str]:
    """Return the tensor and the earlier tensors with the same values, the earliest last."""
    path = {tensor: None}  # a set that keeps its order
    while (node := producers.get(tensor)) is not None and _passes(node) and node.input:
        tensor = node.input[0]
        if tensor in path:  # a cycle: ONNX Runtime will refuse the model
            break
        path[tensor] = None
    return list(path)


def find_logits(tensor: str, producers: Producers) -> LogitsSource | None:
    """Return the logits that probably make the tensor."""
    source = trace(tensor, producers)[-1]
    node = producers.get(source)
    if node is None or not node.input:
        return None
    match operator(node):
        case "Softmax" | "LogSoftmax":
            return LogitsSource(node.input[0])
        case "Sigmoid":
            return LogitsSource(node.input[0], positive_column=0)
        case "Concat":
            return _complement_pair(node, producers)
        case "ai.onnx.ml.LinearClassifier" | "ai.onnx.ml.TreeEnsembleClassifier":
            return _classifier(node, source)
    return None


def _passes(node: NodeProto) -> bool:
    if node.domain in DEFAULT_DOMAINS:
        return node.op_type in STANDARD_PASSES
    return node.domain == "ai.onnx.ml" and node.op_type in LEARNING_PASSES


def _complement_pair(concat: NodeProto, producers: Producers) -> LogitsSource | None:
    """Return z if the node joins ``1 - s`` and ``s`` of one ``s = Sigmoid(z)``."""
    if len(concat.input) != 2:  # noqa: PLR2004 - a pair
        return None
    complement, positive = (producers.get(name) for name in concat.input)
    if complement is None or positive is None or not positive.input:
        return None
    if operator(complement) != "Sub" or operator(positive) != "Sigmoid":
        return None
    if list(complement.input[1:]) != [concat.input[1]]:
        return None
    return LogitsSource(positive.input[0], positive_column=0)


def _classifier(node: NodeProto, source: str) -> LogitsSource | None:
    if len(node.output) != 2 or source != node.output[1]:  # noqa: PLR2004 - label and scores
        return None
    transform = attribute(node, "post_transform")
    if transform is not None and transform.s == b"SOFTMAX":
        return LogitsSource(source, raw=True)
    if transform is not None and transform.s == b"LOGISTIC":
        # Without the logistic function the two columns hold -z (or nothing useful) and z.
        return LogitsSource(source, positive_column=1, raw=True)
    return None


# A float16 softmax has a relative error of 1e-3; a wrong axis or order a far larger one.
RELATIVE_TOLERANCE = 1e-2
ABSOLUTE_TOLERANCE = 1e-5
ROUNDED = 1e-3

Floats = NDArray[np.float64]


def is_confirmed(source: LogitsSource, scores: Floats, values: NDArray[np.floating]) -> bool:
    """Return whether the logits give the output's distribution on the rows tried."""
    if values.ndim == 0 or len(values) != len(scores):
        return False
    n_columns = values.size // max(len(values), 1)
    if source.positive_column is not None and n_columns != source.positive_column + 1:
        return False
    made = distribution(values, "logits", source.positive_column)
    expected = _distribution(scores)
    if expected.shape != made.shape:
        return False
    # Rows that are not finite are no evidence.
    finite = np.isfinite(expected).all(axis=1)
    expected, made = expected[finite], made[finite]
    return bool(finite.any()) and (
        np.allclose(made, expected, rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE)
        or np.allclose(made, expected, rtol=RELATIVE_TOLERANCE, atol=quantisation_step(expected))
    )


# Steps of 6 to 8 bits: finer ones keep to the usual tolerances.
LEAST_STEP, MOST_STEP = 1 / 300, 1 / 64
LEAST_VALUES = 4


def quantisation_step(values: Floats) -> float:
    """Return the step of probabilities that are multiples of one, as of 8 bits; 0.0 if they aren't.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_classes)
        Values of [0, 1].
    """
    levels = np.unique(np.round(values[np.isfinite(values)], 6))
    if len(levels) < LEAST_VALUES:
        return 0.0
    step = float(np.diff(levels).min())
    if not LEAST_STEP <= step <= MOST_STEP:
        return 0.0
    whole = levels / step
    # Levels are counted from 0; a large count multiplies the rounding of the step itself.
    step = float(levels[-1] / max(round(whole[-1]), 1))
    whole = levels / step
    return step if np.abs(whole - np.round(whole)).max() <= ROUNDED else 0.0


def _distribution(scores: Floats) -> Floats:
    """Return the class probabilities, if the scores are a sigmoid's, softmax's or its logarithm."""
    if scores.shape[1] == 1:
        return np.column_stack([1 - scores[:, 0], scores[:, 0]])
    with np.errstate(over="ignore"):
        # Rounding may put a probability just below 0; every row of logarithms has one below -0.6.
        return scores if np.nanmin(scores) >= -ROUNDED else np.exp(scores)


def distribution(
    values: NDArray[np.floating], kind: OutputKind, positive_column: int | None
) -> Floats:
    """Return the probabilities of all classes, shape (n_samples, n_classes): see `OutputChoice`."""
    scores = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if positive_column is not None:
            positive = scores[:, positive_column]
            other = 1 - positive if kind == "probabilities" else np.zeros_like(positive)
            scores = np.column_stack([other, positive])
        if kind == "logits":
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))
