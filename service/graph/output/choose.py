"""The final choice of output, made on the values of a few real rows."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidConfig, InvalidOnnxModel, ModelRule
from service.graph.description import LIKE_PROBABILITIES, Kind, OutputChoice, quote
from service.graph.measure_outputs import check_values
from service.graph.output.logits import LogitsSource, is_confirmed
from service.graph.output.plan import LOGITS, OUTPUT, SCALAR, OutputPlan

SUM_TOLERANCE = 1e-3

ValueKind = Literal["logits", "probabilities", "log-probabilities"]


def kind_of_values(scores: NDArray[np.floating]) -> ValueKind:
    """Return the kind of a block of class scores.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes)
        With two columns or more: values in [0, 1] whose rows sum to 1 within 1e-3 are
        probabilities; values of at most 0 whose exponentials do so are log-probabilities; other
        values outside [0, 1] are logits, and so are equal values in each row. A single column is
        the score of class 1 of two: values in [0, 1] are probabilities, others logits. Rows with
        NaN or +inf are left out.

    Raises
    ------
    InvalidOnnxModel
        If no row is finite, or all values lie in [0, 1] without summing to 1, such as independent
        sigmoids, which are not a distribution over classes.
    """
    values = finite_rows(scores)
    in_unit_interval = bool((values >= 0).all() and (values <= 1 + SUM_TOLERANCE).all())
    if values.shape[1] == 1:
        return "probabilities" if in_unit_interval else "logits"
    if in_unit_interval:
        sums = values.sum(axis=1)
        if np.abs(sums - 1).max() <= SUM_TOLERANCE:
            return "probabilities"
        if (values == values[:, :1]).all():
            return "logits"  # equal ones for all classes, as an untrained model has
        raise InvalidOnnxModel.because(
            ModelRule.NOT_A_DISTRIBUTION,
            "the scores lie in [0, 1] but the rows do not sum to 1 (they sum to "
            f"{sums.min():.4g} up to {sums.max():.4g}), as independent sigmoids do; export the "
            "scores before the sigmoid or a softmax, or set output.kind if they are logits (or "
            "probabilities to be normalised) all the same",
        )
    if (values <= SUM_TOLERANCE).all():
        sums = np.exp(values).sum(axis=1)
        if np.abs(sums - 1).max() <= SUM_TOLERANCE:
            return "log-probabilities"
    return "logits"


def finite_rows(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the rows without NaN and +inf that have a finite value, in float64.

    Raises
    ------
    InvalidOnnxModel
        If there is no such row.
    """
    values = np.asarray(scores, dtype=np.float64)
    keep = ~(np.isnan(values) | np.isposinf(values)).any(axis=1)
    keep &= np.isfinite(values).any(axis=1)
    if not keep.any():
        raise InvalidOnnxModel.because(
            ModelRule.NOT_FINITE, "the output is not finite on any of the rows it was tried on"
        )
    return values[keep]


Floats = NDArray[np.float64]


def choose_output(
    plan: OutputPlan, trial: Mapping[str, NDArray[np.floating]], *, n_samples: int
) -> OutputChoice:
    """Decide the kind of the planned output and the tensor that the head reads.

    Parameters
    ----------
    trial
        Outputs of the graph of `probe_graph` for some rows of real data, by name.
    n_samples
        The number of those rows.

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
    kind: Kind = "logits"
    if plan.source is not None and is_confirmed(plan.source, scores, trial[LOGITS]):
        source, reading = plan.source, _describe_source(plan.source, n_samples)
    else:
        kind, reading = _kind(plan, scores)
        source = LogitsSource(plan.tensor, positive_column=0 if scores.shape[1] == 1 else None)
    return OutputChoice(
        name=plan.name,
        kind=kind,
        tensor=source.tensor,
        inferred=f"{plan.reason}; {reading}",
        n_classes=max(scores.shape[1], 2),
        positive_column=source.positive_column,
        raw=source.raw,
        precision=plan.precision,
    )


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


def _kind(plan: OutputPlan, scores: Floats) -> tuple[Kind, str]:
    if plan.kind == "probabilities":
        return "probabilities", _claimed_probabilities(scores)
    if plan.kind == "logits":
        return "logits", _claimed_logits(scores)
    found = kind_of_values(scores)
    kind: Kind = "probabilities" if found == "probabilities" else "logits"
    by_value = f"by its values on {len(scores)} rows"
    if scores.shape[1] == 1:
        meaning = "the probability" if found == "probabilities" else "the logit"
        return kind, f"{by_value} its one column is {meaning} of class 1"
    also = ", which serve as logits" if found == "log-probabilities" else ""
    return kind, f"{by_value} it holds {found}{also}"


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
    if scores.shape[1] > 1 and scores.min() >= 0 and distances.max() <= SUM_TOLERANCE:
        said += f"; on {len(scores)} rows {LIKE_PROBABILITIES}"
    return said


def _claimed_probabilities(scores: Floats) -> str:
    said = "the caller says that it holds probabilities"
    sums = finite_rows(scores).sum(axis=1)
    if scores.shape[1] > 1 and np.abs(sums - 1).max() > SUM_TOLERANCE:
        said += f"; its rows sum to {sums.min():.4g} up to {sums.max():.4g} and are normalised"
    return said
