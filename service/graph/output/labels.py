"""The model's own label output, to compare with the predicted class.

Some exporters write score columns in another order than the classes: skl2onnx does so for a binary
SVC without probabilities. The label output shows it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from howsure.statistics.findings.outputs import LabelDifference
from howsure.statistics.softmax import BINARY, least_probability
from service.errors import InvalidOnnxModel, ModelRule
from service.graph.describe import ClassLabels, class_labels
from service.graph.description import TensorSpec, quote

LABELS = "howsure_labels"
LABEL_ENCODER_WITH_KEYS = 2  # the first version of ai.onnx.ml whose LabelEncoder has them
INTEGERS = frozenset(("int32", "int64", "bool"))
TIED = 1e-6
MOST_ROWS = 0.5


@dataclass(frozen=True)
class LabelOutput:
    """A graph output with one class label per sample.

    ``classes`` are the labels of the score columns, empty if the graph does not name them: a label
    is then the number of a column. ``is_trusted`` tells whether it may refute the scores.
    """

    name: str
    classes: ClassLabels
    is_trusted: bool


def find_labels(
    graph: GraphProto, outputs: Iterable[TensorSpec], *, is_trusted: bool
) -> LabelOutput | None:
    """Return the one output with labels; only those of classes that the graph names are trusted."""
    classes = class_labels(graph) or ()
    if len(set(classes)) != len(classes):
        return None
    dtypes = {"str"} if classes and isinstance(classes[0], str) else INTEGERS
    names = [
        spec.name
        for spec in outputs
        if spec.dtype in dtypes and all(size in (None, 1) for size in (spec.shape or ())[1:])
    ]
    return LabelOutput(names[0], classes, is_trusted and bool(classes)) if len(names) == 1 else None


def add_class_numbers(model: ModelProto, labels: LabelOutput) -> None:
    """Append, in place, the float64 output ``howsure_labels``: the column of each label, or -1."""
    graph = model.graph
    numbers = labels.name
    if labels.classes and isinstance(labels.classes[0], str):
        numbers = f"{LABELS}_encoded"
        graph.node.append(_encoder(model, labels, numbers))
    graph.node.append(helper.make_node("Cast", [numbers], [LABELS], to=TensorProto.DOUBLE))


def compare_labels(
    labels: LabelOutput,
    probabilities: NDArray[np.float64],
    values: NDArray[np.floating],
    *,
    threshold: float | None,
) -> LabelDifference | None:
    """Return how labels differ from the predicted classes; None if they do not.

    Rows whose two most probable classes are equally probable are left out.

    Parameters
    ----------
    probabilities
        Of each class, for the trial rows.
    values
        The labels, as `add_class_numbers` gives them.
    threshold
        Decision threshold of two classes.

    Raises
    ------
    InvalidOnnxModel
        If trusted labels differ on most rows, and not by another threshold; or there is not one
        column per class.
    """
    n_rows, n_columns = probabilities.shape
    if labels.classes and n_columns != len(labels.classes):
        if not labels.is_trusted:
            return None
        raise InvalidOnnxModel.because(
            ModelRule.LABELS_DIFFER,
            f"it has {n_columns} columns of scores for {len(labels.classes)} classes, as scores "
            "of pairs of classes have; export one column per class",
        )
    if len(values) != n_rows or values.size != n_rows:
        return None
    own = _columns(values.reshape(-1), labels)
    compared = (own >= 0) & (own < n_columns) & np.isfinite(probabilities).all(axis=1)
    best, explained = probabilities.argmax(axis=1), None
    if n_columns == BINARY:
        positive = probabilities[:, 1]
        explained = _threshold_between(*(positive[compared & (own == label)] for label in (0, 1)))
    if threshold is None:
        second, first = np.sort(probabilities, axis=1)[:, -2:].T
        compared &= first - second > TIED
    else:
        best = (positive >= least_probability(threshold)).astype(np.int64)
    differs = compared & (best != own)
    # Without named classes other numbers may be flags or ids.
    if not differs.any() or (explained is None and not labels.classes):
        return None
    found = LabelDifference(
        name=quote(labels.name),
        samples=int(compared.sum()),
        differing=float(differs[compared].mean()),
        label_share=float(own[compared].mean()) if n_columns == BINARY else None,
        predicted_share=float(best[compared].mean()) if n_columns == BINARY else None,
        threshold=explained,
    )
    if labels.is_trusted and explained is None and found.differing > MOST_ROWS:
        row = int(np.argmax(differs))
        raise InvalidOnnxModel.because(
            ModelRule.LABELS_DIFFER,
            f"its scores and its label output {found.name} name different classes in "
            f"{int(differs.sum())} of {found.samples} rows: for row {row} the largest score is "
            f"that of class {labels.classes[best[row]]!r}, the label is "
            f"{labels.classes[own[row]]!r}. The columns may be in another order, as skl2onnx "
            "writes them for a binary SVC without probability=True: export probabilities. If the "
            "scores are right, set output.kind to logits or probabilities",
        )
    return found


def _threshold_between(below: NDArray[np.float64], above: NDArray[np.float64]) -> float | None:
    """Return the shortest number above all of ``below`` and at most all of ``above``, if any is."""
    if below.size == 0 or above.size == 0 or not below.max() < above.min():
        return None
    for digits in range(1, 17):
        shortest = round(float(np.floor(above.min() * 10.0**digits)) / 10.0**digits, digits)
        if below.max() < shortest:
            return shortest
    return float(above.min())


def _encoder(model: ModelProto, labels: LabelOutput, output: str) -> NodeProto:
    attributes: dict[str, Any] = {"default_int64": -1}
    texts = list(labels.classes)
    versions = [entry.version for entry in model.opset_import if entry.domain == "ai.onnx.ml"]
    if max(versions, default=1) < LABEL_ENCODER_WITH_KEYS:
        attributes["classes_strings"] = texts
    else:
        attributes |= {"keys_strings": texts, "values_int64s": list(range(len(texts)))}
    return helper.make_node(
        "LabelEncoder", [labels.name], [output], domain="ai.onnx.ml", **attributes
    )


def _columns(values: NDArray[np.floating], labels: LabelOutput) -> NDArray[np.int64]:
    """Return the score column of each label, -1 for none."""
    if not labels.classes or isinstance(labels.classes[0], str):
        return values.astype(np.int64)
    known = np.array(labels.classes, dtype=np.float64)
    order = np.argsort(known)
    places = np.clip(np.searchsorted(known, values, sorter=order), 0, len(known) - 1)
    columns = order[places]
    return np.where(known[columns] == values, columns, -1)
