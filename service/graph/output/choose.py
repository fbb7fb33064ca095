"""The final choice of output, made on the values of a few real rows."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from howsure.outputs import OutputKind
from howsure.statistics.findings.outputs import LabelDifference
from howsure.statistics.softmax import BINARY
from service.errors import InvalidConfig, InvalidOnnxModel, ModelRule
from service.graph.description import LIKE_PROBABILITIES, OutputChoice, quote
from service.graph.measure_outputs import check_values
from service.graph.output.kinds import (
    OPPOSITE_COLUMNS,
    SUM_TOLERANCE,
    are_opposite,
    finite_rows,
    infer_kind,
)
from service.graph.output.labels import LABELS, compare_labels
from service.graph.output.logits import LogitsSource, distribution, is_confirmed
from service.graph.output.plan import LOGITS, OUTPUT, SCALAR, OutputPlan

Floats = NDArray[np.float64]


def choose_output(
    plan: OutputPlan,
    trial: Mapping[str, NDArray[np.floating]],
    *,
    n_samples: int,
    decision_threshold: float | None = None,
) -> tuple[OutputChoice, LabelDifference | None]:
    """Decide the kind of the planned output and the tensor that the head reads.

    Also return how the model's label output differs from the predicted class, if it has one.

    Parameters
    ----------
    trial
        Outputs of the graph of `probe_graph` for some rows of real data, by name.
    n_samples
        The number of those rows.
    decision_threshold
        Of models of two classes; others ignore it.

    Raises
    ------
    InvalidOnnxModel
        If the output's shape is not (samples, classes), it is not finite, or its values are
        neither logits nor a distribution.
    InvalidConfig
        If the caller declares probabilities and values are negative or above 1; or a scalar output
        is invalid.
    """
    for position, name in enumerate(plan.scalars):
        check_values(name, trial[f"{SCALAR}{position}"], n_samples)
    scores = _as_rows(trial[OUTPUT], n_samples, plan.name)
    if plan.kind == "probabilities":
        _check_probabilities(scores)
    if plan.source is not None and plan.source.positive_column is None and scores.shape[1] == 1:
        raise InvalidOnnxModel.because(
            ModelRule.NOT_A_DISTRIBUTION,
            f"output {quote(plan.name)} is a softmax over one column, which is always 1; export "
            "the score before it, or a sigmoid",
        )
    kind: OutputKind = "logits"
    is_found = plan.source is not None and is_confirmed(plan.source, scores, trial[LOGITS])
    if plan.source is not None and is_found:
        source, reading = plan.source, _describe_source(plan.source, n_samples)
    else:
        kind, reading = _kind(plan, scores)
        column = 0 if scores.shape[1] == 1 else None
        if plan.kind is None and are_opposite(scores):
            column, reading = 1, f"by its values on {n_samples} rows {OPPOSITE_COLUMNS}"
        source = LogitsSource(plan.tensor, positive_column=column)
    n_classes = max(scores.shape[1], BINARY)
    choice = OutputChoice(
        name=plan.name,
        kind=kind,
        tensor=source.tensor,
        inferred=f"{plan.reason}; {reading}",
        n_classes=n_classes,
        positive_column=source.positive_column,
        raw=source.raw,
        precision=plan.precision,
        decision_threshold=decision_threshold if n_classes == BINARY else None,
    )
    if plan.labels is None:
        return choice, None
    values = trial[LOGITS if is_found else OUTPUT]
    probabilities = distribution(values, choice.kind, choice.positive_column)
    difference = compare_labels(
        plan.labels, probabilities, trial[LABELS], threshold=choice.decision_threshold
    )
    return choice, difference


def _as_rows(values: NDArray[np.floating], n_samples: int, name: str) -> Floats:
    """Return shape (n_samples, columns), as `Flatten` does in the graph."""
    wide = [size for size in values.shape[1:] if size != 1]
    if values.ndim == 0 or len(values) != n_samples or len(wide) > 1 or 0 in wide:
        raise InvalidOnnxModel.because(
            ModelRule.OUTPUT_SHAPE,
            f"output {quote(name)} has the shape {values.shape} for {n_samples} samples; "
            "(samples, classes) is needed",
        )
    return np.asarray(values, dtype=np.float64).reshape(n_samples, -1)


def _kind(plan: OutputPlan, scores: Floats) -> tuple[OutputKind, str]:
    if plan.kind == "probabilities":
        return "probabilities", _claimed_probabilities(scores)
    if plan.kind == "logits":
        return "logits", _claimed_logits(scores)
    return infer_kind(plan.name, plan.reading, scores)


def _describe_source(source: LogitsSource, n_samples: int) -> str:
    function = "softmax" if source.positive_column is None else "sigmoid"
    made_from = "its classifier's raw scores" if source.raw else quote(source.tensor)
    return (
        f"by the graph and on {n_samples} rows it is the {function} of {made_from}: "
        "these logits are read in its place"
    )


def _check_probabilities(scores: Floats) -> None:
    values = finite_rows(scores)
    if values.min() < -SUM_TOLERANCE or values.max() > 1 + SUM_TOLERANCE:
        raise InvalidConfig.at(
            "config.output.kind",
            f"the output is said to hold probabilities, but its values reach from "
            f"{values.min():.4g} to {values.max():.4g}",
        )


def _claimed_logits(scores: Floats) -> str:
    said = "the caller says that it holds logits"
    distances = np.abs(scores.sum(axis=1) - 1)
    if scores.shape[1] > 1 and scores.min() >= -SUM_TOLERANCE and distances.max() <= SUM_TOLERANCE:
        said += f"; on {len(scores)} rows {LIKE_PROBABILITIES}"
    return said


def _claimed_probabilities(scores: Floats) -> str:
    said = "the caller says that it holds probabilities"
    sums = finite_rows(scores).sum(axis=1)
    if scores.shape[1] > 1 and np.abs(sums - 1).max() > SUM_TOLERANCE:
        said += f"; its rows sum to {sums.min():.4g} up to {sums.max():.4g} and are normalised"
    return said
