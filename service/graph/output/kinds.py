"""The kind of an output, logits or probabilities: what the graph says and what the values say.

Where the two differ, or the values fit several readings with different answers, the caller is
asked to set ``output.kind``.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto

from howsure.outputs import OutputKind
from service.errors import InvalidOnnxModel, ModelRule
from service.graph.description import quote
from service.graph.output.logits import quantisation_step, trace
from service.graph.proto import Producers, attribute, operator

# Rounding may put a probability just below 0 or above 1, and a row's sum beside 1.
SUM_TOLERANCE = 1e-3
HALF = 0.5
# By which the sum of a row of probabilities in steps may differ from 1.
MOST_ROUNDED = 0.05
# Fewer rows may have one sum by chance.
LEAST_ROWS = 10

ValueKind: TypeAlias = Literal["logits", "probabilities", "log-probabilities"]
Floats: TypeAlias = NDArray[np.float64]

CLASSIFIERS = ("ai.onnx.ml.LinearClassifier", "ai.onnx.ml.TreeEnsembleClassifier")
REGRESSORS = ("LinearRegressor", "SVMRegressor", "TreeEnsembleRegressor")
DISTRIBUTIONS = (b"SOFTMAX", b"LOGISTIC", b"SOFTMAX_ZERO", b"PROBIT")


@dataclass(frozen=True)
class GraphReading:
    """What an output holds by the last nodes of its graph, and the node that says so."""

    kind: Literal["probabilities", "regression"]
    node: str


def read_graph(tensor: str, producers: Producers) -> GraphReading | None:
    """Return what the graph says about a tensor; None if its last nodes do not tell.

    A ZipMap does not: skl2onnx appends it to decision scores too.
    """
    for name in trace(tensor, producers):
        node = producers.get(name)
        found = None if node is None else _reading_of(node, producers)
        if found is not None:
            return found
    return None


def _reading_of(node: NodeProto, producers: Producers) -> GraphReading | None:
    name = operator(node)
    if node.op_type.removeprefix("QLinear") in ("Softmax", "Sigmoid"):
        return GraphReading("probabilities", f"a {node.op_type}")
    if name == "Concat" and any(_is_sigmoid(source, producers) for source in node.input):
        return GraphReading("probabilities", "a Sigmoid and its complement")
    if name == "ai.onnx.ml.Normalizer":
        norm = attribute(node, "norm")
        is_sum = norm is not None and norm.s == b"L1"
        return GraphReading("probabilities", "a Normalizer of sums") if is_sum else None
    transform = attribute(node, "post_transform")
    applied = b"NONE" if transform is None else transform.s
    if name in CLASSIFIERS and applied in DISTRIBUTIONS:
        return GraphReading("probabilities", f"a {node.op_type} with {applied.decode()}")
    if node.domain == "ai.onnx.ml" and node.op_type in REGRESSORS and applied == b"NONE":
        return GraphReading("regression", f"a {node.op_type}")
    return None


def _is_sigmoid(tensor: str, producers: Producers) -> bool:
    node = producers.get(tensor)
    return node is not None and operator(node) == "Sigmoid"


def infer_kind(name: str, reading: GraphReading | None, scores: Floats) -> tuple[OutputKind, str]:
    """Return the kind of an output by its graph and its values, and the reason.

    Parameters
    ----------
    name
        The output, for messages.
    scores : ndarray of shape (n_samples, n_columns)
        Its values on real rows. A single column is the score of class 1 of two.

    Raises
    ------
    InvalidOnnxModel
        If no reading fits; or graph and values, or two readings of the values, lead to different
        answers. The message has the readings and the option that chooses one.
    """
    is_distribution = reading is not None and reading.kind == "probabilities"
    found = kind_of_values(scores, is_distribution=is_distribution)
    other = _other_reading(reading, found, scores)
    if other is not None:
        raise _unclear(name, found, other, scores)
    by_value = f"by its values on {len(scores)} rows"
    if reading is not None:
        by_value = f"by its graph, which ends in {reading.node}, and {by_value}"
    kind: OutputKind = "probabilities" if found == "probabilities" else "logits"
    if scores.shape[1] == 1:
        meaning = "probability" if found == "probabilities" else "logit"
        return kind, f"{by_value} its one column is the {meaning} of class 1"
    also = ", which serve as logits" if found == "log-probabilities" else ""
    return kind, f"{by_value} it holds {found}{also}"


def kind_of_values(scores: NDArray[np.floating], *, is_distribution: bool = False) -> ValueKind:
    """Return the kind of a block of class scores, by the values alone.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes)
        All comparisons allow for 1e-3. With two columns or more: values in [0, 1] whose rows sum to
        1 are probabilities; values of at most 0 whose exponentials do so are log-probabilities;
        other values outside [0, 1] are logits, and so are equal values in each row. A single column
        is the score of class 1 of two: values in [0, 1] are probabilities, others logits. Rows with
        NaN or +inf are left out. Probabilities that 8 bits have rounded may each be half a step
        off.
    is_distribution
        Whether a softmax is known to have made them, so that steps explain any sum.

    Raises
    ------
    InvalidOnnxModel
        If no row is finite, or all values lie in [0, 1] without summing to 1, such as independent
        sigmoids, which are not a distribution over classes.
    """
    values = finite_rows(scores)
    in_unit_interval = bool(values.min() >= -SUM_TOLERANCE and values.max() <= 1 + SUM_TOLERANCE)
    if values.shape[1] == 1:
        return "probabilities" if in_unit_interval else "logits"
    sums = values.sum(axis=1)
    if in_unit_interval:
        if _all_one(sums):
            return "probabilities"
        rounded = quantisation_step(values) * values.shape[1] / 2
        if _all_one(sums, rounded if is_distribution else min(rounded, MOST_ROUNDED)):
            return "probabilities"
        if (values == values[:, :1]).all():
            return "logits"  # equal ones for all classes, as an untrained model has
        raise InvalidOnnxModel.because(
            ModelRule.NOT_A_DISTRIBUTION,
            "the scores lie in [0, 1] but the rows do not sum to 1 (they sum to "
            f"{sums.min():.4g} up to {sums.max():.4g}), as independent sigmoids do: a model that "
            "gives several labels at once is not supported. If one class of each row is right, "
            "export the scores before the sigmoid, or a softmax; or set output.kind to "
            '"probabilities", to have the rows normalised, or to "logits"',
        )
    if (values <= SUM_TOLERANCE).all() and _all_one(np.exp(values).sum(axis=1)):
        return "log-probabilities"
    return "logits"


def are_opposite(scores: Floats) -> bool:
    """Return whether there are two columns, -d and d, as skl2onnx writes a decision function.

    A softmax of them would be the sigmoid of 2 d.
    """
    if scores.shape[1:] != (2,):
        return False
    values = finite_rows(scores)
    return bool(values.any() and (values[:, 0] == -values[:, 1]).all())


OPPOSITE_COLUMNS = (
    "its two columns are one score with both signs: the second is read as the logit of class 1; "
    'set output.kind to "logits" to take their softmax'
)


def finite_rows(scores: NDArray[np.floating]) -> Floats:
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


def _all_one(sums: Floats, tolerance: float = SUM_TOLERANCE) -> bool:
    return bool(np.abs(sums - 1).max() <= tolerance)


def _other_reading(reading: GraphReading | None, found: ValueKind, scores: Floats) -> str | None:
    """Return a reading that contradicts ``found`` and would give other answers, if there is one."""
    if reading is None:
        values = finite_rows(scores)
        if values.shape[1] == 1:
            return _other_of_column(values) if found == "probabilities" else None
        return _other_of_sums(values) if found == "logits" else None
    if reading.kind == "regression":
        return f"a regression, which is not supported, because {reading.node} makes it"
    made = f"probabilities, because {reading.node} makes it"
    return made if found != "probabilities" else None


def _other_of_column(values: Floats) -> str | None:
    if values.min() > HALF or values.max() < HALF:
        return "the logit of class 1, because all values lie on one side of 0.5"
    return None


def _other_of_sums(values: Floats) -> str | None:
    """Return the reading of rows that differ and have one sum; logits have any sum."""
    if len(values) < LEAST_ROWS or (values == values[0]).all():
        return None
    sums = values.sum(axis=1)
    if _all_one(sums):
        return "probabilities, because each row sums to 1"
    total = float(sums.mean())
    if values.min() >= 0 and np.abs(sums - total).max() <= SUM_TOLERANCE * total:
        return (
            f"shares, because no value is negative and each row sums to {total:.6g}: "
            "then divide by that in the graph"
        )
    return None


def _unclear(name: str, found: ValueKind, other: str, scores: Floats) -> InvalidOnnxModel:
    values = finite_rows(scores)
    return InvalidOnnxModel.because(
        ModelRule.UNCLEAR_KIND,
        f"output {quote(name)} can be read in two ways, with different answers: as {found}, by its "
        f"values from {values.min():.4g} to {values.max():.4g} on {len(scores)} rows; or as "
        f'{other}. Set output.kind to "logits" or "probabilities"',
    )
