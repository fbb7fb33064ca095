"""Uploads that are made to have one fault each, and some that have none."""

from typing import Any

import numpy as np
import onnx
from graph_models import constant, make_model, steps, value
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from running_service import npz
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

Parts = dict[str, bytes]
Array = NDArray[Any]

# Calibrated scores of 2,000 answers, and whether each was right.
SCORES = np.random.default_rng(7).beta(3, 2, 2000)
CORRECT = np.random.default_rng(8).random(2000) < SCORES


def with_factor(content: bytes, factor: float) -> bytes:
    """Return a float model that multiplies its input first."""
    model = onnx.load_from_string(content)
    (given,) = model.graph.input
    name, given.name = given.name, f"unscaled_{given.name}"
    constant = numpy_helper.from_array(np.array(factor, dtype=np.float32), f"factor_of_{name}")
    model.graph.initializer.append(constant)
    model.graph.node.insert(0, helper.make_node("Mul", [given.name, constant.name], [name]))
    return model.SerializeToString()


def of_squares(content: bytes, inputs: Array) -> tuple[bytes, Array]:
    """Return the model and its inputs as pictures of one channel, if they are flat rows."""
    if inputs.ndim > 2:
        return content, inputs
    model = onnx.load_from_string(content)
    (given,) = model.graph.input
    side = round(inputs.shape[1] ** 0.5)
    name, shape = given.name, ["n", 1, side, side]
    model.graph.node.insert(0, helper.make_node("Flatten", ["pictures"], [name], axis=1))
    pictures = helper.make_tensor_value_info("pictures", onnx.TensorProto.FLOAT, shape)
    model.graph.input[0].CopyFrom(pictures)
    return model.SerializeToString(), inputs.reshape(-1, *shape[1:])


def faulty_uploads(model: bytes, inputs: Array, labels: Array, logits: Array) -> dict[str, Parts]:
    """Return an upload for each finding, by its code.

    ``model`` takes floats from 0 to 1, which ``inputs`` are, and gives ``logits``, of ten classes.
    """
    n, rng = len(labels), np.random.default_rng(0)
    probabilities = softmax(logits.astype(np.float64), axis=1)
    spoilt = np.where(rng.random(n) < 0.2, (labels + 1) % 10, labels)
    denied = np.where(np.arange(n) % 20 == 7, (labels + 1) % 10, labels)
    again, half = np.arange(n // 5), n // 2
    never = logits.copy()
    never[:, 6] = logits.min() - 30
    few_labels = labels < 8
    twice = np.concatenate([np.arange(n), again])
    relabelled = np.concatenate([labels, (labels[again] + 1) % 10])
    order = np.array([3, 0, 1, 2, 7, 4, 9, 5, 6, 8])

    of_pictures, pictures = of_squares(model, inputs)

    def by_model(inputs: Array, labels: Array, **others: bytes) -> Parts:
        return {"model": model, "calibration": of(inputs, labels)} | others

    return {
        "inputs-not-scaled": by_model(inputs * 255, labels),
        "inputs-scaled-twice": by_model(inputs, labels, model=with_factor(model, 1 / 255)),
        "wrong-preprocessing": by_model(1 - pictures, labels, model=of_pictures),
        "labels-shifted": by_model(inputs, (labels + 1) % 10),
        "labels-permuted": by_model(inputs, order[labels]),
        "softmax-twice": of_outputs(labels, logits=probabilities),
        "not-probabilities": of_outputs(labels, probabilities=np.eye(10)[logits.argmax(axis=1)]),
        "label-output-differs": of_tuned_labels(inputs, labels),
        "accuracy-near-chance": by_model(rng.permutation(inputs), labels),
        "score-reversed": of_pairs(score=-SCORES, correct=CORRECT),
        "score-near-chance": of_pairs(score=np.roll(SCORES, 1), correct=CORRECT),
        "accuracy-differs": by_model(
            inputs[half:], labels[half:], evaluation=of(inputs[:half], spoilt[:half])
        ),
        "inputs-out-of-range": by_model(
            inputs[half:], labels[half:], evaluation=of(inputs[:half] * 255, labels[:half])
        ),
        "no-errors": by_model(inputs, logits.argmax(axis=1)),
        "samples-in-both-sets": by_model(
            inputs, labels, evaluation=of(inputs[:half], labels[:half])
        ),
        "duplicate-samples": by_model(inputs[twice], labels[twice]),
        "conflicting-labels": by_model(inputs[twice], relabelled),
        "surest-answers-denied": by_model(inputs, denied),
        "classes-not-seen": by_model(inputs[few_labels], labels[few_labels]),
        "classes-not-predicted": of_outputs(labels, logits=never),
        "few-samples-for-bins": of_outputs(labels[:40], logits=logits[:40]),
    }


def clean_uploads(model: bytes, inputs: Array, labels: Array, logits: Array) -> dict[str, Parts]:
    """Return uploads without a fault, of the same model."""
    half = len(labels) // 2
    probabilities = softmax(logits.astype(np.float64), axis=1)
    by_class = np.argsort(labels, kind="stable")
    return {
        "floats": {
            "model": model,
            "calibration": of(inputs[:half], labels[:half]),
            "evaluation": of(inputs[half:], labels[half:]),
        },
        "bytes": {
            "model": with_factor(model, 1 / 255),
            "calibration": of(np.round(inputs * 255).astype(np.uint8), labels),
        },
        "sorted by class": {"model": model, "calibration": of(inputs[by_class], labels[by_class])},
        "logits": of_outputs(labels, logits=logits),
        "probabilities": of_outputs(labels, probabilities=probabilities.astype(np.float32)),
        "pairs": of_pairs(score=SCORES, correct=CORRECT),
    }


def of_tuned_labels(inputs: Array, labels: Array) -> Parts:
    """Return a model of two classes whose label is 1 from a probability of 0.2 on."""
    rows = inputs.reshape(len(inputs), -1).astype(np.float32)
    fitted = LogisticRegression(max_iter=200).fit(rows, labels == 8)
    weights = constant("w", fitted.coef_.T / 4), constant("b", fitted.intercept_ / 4)
    model = make_model(
        steps("m = MatMul(x, w); z = Add(m, b); y = Sigmoid(z); label = GreaterOrEqual(y, t)"),
        inputs=[value("x", ("n", rows.shape[1]))],
        outputs=[value("y", ("n", 1)), value("label", ("n", 1), onnx.TensorProto.BOOL)],
        initializers=[*weights, constant("t", [0.2])],
    )
    return {"model": model.SerializeToString(), "calibration": of(rows, (labels == 8).astype(int))}


def of_pairs(score: Array, correct: Array) -> Parts:
    return {"calibration": npz(score=score, correct=correct)}


def of_outputs(labels: Array, **outputs: Array) -> Parts:
    return {"calibration": npz(labels=labels, **outputs)}


def of(inputs: Array, labels: Array) -> bytes:
    kept = inputs if inputs.dtype == np.uint8 else inputs.astype(np.float32)
    return npz(inputs=kept, labels=labels)
