"""Uploads that are made to have one fault each, and some that have none."""

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from running_service import npz
from scipy.special import softmax

Parts = dict[str, bytes]
Array = NDArray[Any]


def with_factor(content: bytes, factor: float) -> bytes:
    """Return a float model that multiplies its input first."""
    model = onnx.load_from_string(content)
    (given,) = model.graph.input
    name, given.name = given.name, f"unscaled_{given.name}"
    constant = numpy_helper.from_array(np.array(factor, dtype=np.float32), f"factor_of_{name}")
    model.graph.initializer.append(constant)
    model.graph.node.insert(0, helper.make_node("Mul", [given.name, constant.name], [name]))
    return model.SerializeToString()


def faulty_uploads(model: bytes, inputs: Array, labels: Array, logits: Array) -> dict[str, Parts]:
    """Return an upload for each finding, by its code.

    ``model`` takes floats from 0 to 1, which ``inputs`` are, and gives ``logits``, of ten classes.
    """
    n, rng = len(labels), np.random.default_rng(0)
    probabilities = softmax(logits.astype(np.float64), axis=1)
    spoilt = np.where(rng.random(n) < 0.2, (labels + 1) % 10, labels)
    again = np.arange(n // 5)
    never = logits.copy()
    never[:, 6] = logits.min() - 30
    few_labels = labels < 8
    twice = np.concatenate([np.arange(n), again])
    relabelled = np.concatenate([labels, (labels[again] + 1) % 10])
    order = np.array([3, 0, 1, 2, 7, 4, 9, 5, 6, 8])
    return {
        "inputs-not-scaled": {"model": model, "calibration": of(inputs * 255, labels)},
        "inputs-scaled-twice": {
            "model": with_factor(model, 1 / 255),
            "calibration": of(inputs, labels),
        },
        "labels-shifted": {"model": model, "calibration": of(inputs, (labels + 1) % 10)},
        "labels-permuted": {"model": model, "calibration": of(inputs, order[labels])},
        "softmax-twice": {"calibration": npz(logits=probabilities, labels=labels)},
        "not-probabilities": {
            "calibration": npz(probabilities=np.eye(10)[logits.argmax(axis=1)], labels=labels)
        },
        "accuracy-near-chance": {
            "model": model,
            "calibration": of(rng.permutation(inputs), labels),
        },
        "accuracy-differs": {
            "model": model,
            "calibration": of(inputs, labels),
            "evaluation": of(inputs, spoilt),
        },
        "duplicate-samples": {"model": model, "calibration": of(inputs[twice], labels[twice])},
        "conflicting-labels": {"model": model, "calibration": of(inputs[twice], relabelled)},
        "classes-not-seen": {
            "model": model,
            "calibration": of(inputs[few_labels], labels[few_labels]),
        },
        "classes-not-predicted": {"calibration": npz(logits=never, labels=labels)},
        "few-samples-for-bins": {"calibration": npz(logits=logits[:40], labels=labels[:40])},
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
        "logits": {"calibration": npz(logits=logits, labels=labels)},
        "probabilities": {
            "calibration": npz(probabilities=probabilities.astype(np.float32), labels=labels)
        },
        "too sure": {"calibration": npz(logits=logits * 4, labels=labels)},
    }


def of(inputs: Array, labels: Array) -> bytes:
    kept = inputs if inputs.dtype == np.uint8 else inputs.astype(np.float32)
    return npz(inputs=kept, labels=labels)
