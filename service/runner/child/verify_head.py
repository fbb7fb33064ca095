"""Checks the uncertainty head against the model's own outputs, on real rows."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidOnnxModel
from service.graph.output import OutputChoice
from service.graph.serving import TOP_CLASSES, TOP_SCORES
from service.model_rules import ModelRule
from service.runner.frames import Array

# Fused kernels and half precision move a probability by less; a wrong axis by far more.
RELATIVE_TOLERANCE = 1e-2
ABSOLUTE_TOLERANCE = 1e-3


def verify_head(choice: OutputChoice, values: Array, head: Mapping[str, Array]) -> None:
    """Compare the head's probabilities with those that numpy makes of the model's output.

    Parameters
    ----------
    values
        What the tensor that the head reads held for these rows.
    head
        The head's outputs for the same rows, from another run of the model.

    Raises
    ------
    InvalidOnnxModel
        If a row that is finite differs: the model answers at random, for instance.
    """
    expected = distribution(choice, values)
    top_classes, top_scores = head[TOP_CLASSES], head[TOP_SCORES]
    if top_classes.shape != top_scores.shape or expected.shape[1] != choice.n_classes:
        raise InvalidOnnxModel.because(
            ModelRule.ANSWERS_DIFFER, "the output's shape differs from one run to the next"
        )
    if (top_classes < 0).any() or (top_classes >= choice.n_classes).any():
        raise InvalidOnnxModel.because(
            ModelRule.ANSWERS_DIFFER, "ONNX Runtime ranked classes that do not exist"
        )
    own = np.take_along_axis(expected, top_classes.astype(np.int64), axis=1)
    finite = np.isfinite(expected).all(axis=1)
    close = np.isclose(
        top_scores, own, rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE, equal_nan=True
    ).all(axis=1)
    _refuse_differing(np.asarray(finite & ~close), "scores")


def verify_alone(together: Mapping[str, Array], alone: Mapping[str, Array]) -> None:
    """Compare the head's answer to the first of several rows with its answer to that row alone.

    Raises
    ------
    InvalidOnnxModel
        If it differs: one caller's rows would change another's answers.
    """
    first = together[TOP_SCORES][:1]
    if not np.isclose(
        first, alone[TOP_SCORES], rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE, equal_nan=True
    ).all():
        raise InvalidOnnxModel.because(
            ModelRule.ROWS_MIXED,
            "its answer to a row changes with the rows beside it; a model must answer each row by "
            "itself: export it in inference mode, with no sum or mean over the batch",
        )


def verify_scores(choice: OutputChoice, values: Array, logs: Array) -> None:
    """Compare log-probabilities of all classes with those that numpy makes of the model's output.

    Raises
    ------
    InvalidOnnxModel
        If a row that is finite differs.
    """
    expected = distribution(choice, values)
    if expected.shape != logs.shape:
        raise InvalidOnnxModel.because(
            ModelRule.ANSWERS_DIFFER, "the output's shape differs from one run to the next"
        )
    finite = np.isfinite(expected).all(axis=1)
    close = np.isclose(
        np.exp(logs), expected, rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE, equal_nan=True
    ).all(axis=1)
    _refuse_differing(np.asarray(finite & ~close), "scores")


def verify_scalar(values: Array, passed: Array) -> None:
    """Compare what was passed through of a scalar output with what another run of the model gave.

    Raises
    ------
    InvalidOnnxModel
        If a row that is finite differs by more than kernels may, measured by the largest value.
    """
    own = np.asarray(values, dtype=np.float64).reshape(len(values))
    finite = np.isfinite(own) & np.isfinite(passed)
    scale = np.abs(own[finite]).max(initial=0)
    close = np.isclose(passed, own, rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE * scale)
    _refuse_differing(np.asarray(finite & ~close), "uncertainties")


def _refuse_differing(differs: NDArray[np.bool_], what: str) -> None:
    if differs.any():
        raise InvalidOnnxModel.because(
            ModelRule.ANSWERS_DIFFER,
            f"it answered row {int(np.argmax(differs))} with other {what} when it was run a second "
            "time; a model must answer the same rows alike",
        )


def distribution(choice: OutputChoice, values: Array) -> NDArray[np.float64]:
    """Return the probabilities of all classes, shape (n_samples, n_classes)."""
    scores = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if choice.positive_column is not None:
            positive = scores[:, choice.positive_column]
            other = 1 - positive if choice.kind == "probabilities" else np.zeros_like(positive)
            scores = np.column_stack([other, positive])
        if choice.kind == "logits":
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))
