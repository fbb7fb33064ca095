"""The model's own label output, to compare with the class of the largest score.

Some exporters write score columns in another order than the classes: skl2onnx does so for a binary
SVC without probabilities. The label output shows it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from service.errors import InvalidOnnxModel, ModelRule
from service.graph.describe import ClassLabels, class_labels
from service.graph.description import TensorSpec, quote

LABELS = "howsure_labels"
LABEL_ENCODER_WITH_KEYS = 2  # the first version of ai.onnx.ml whose LabelEncoder has them
INTEGERS = frozenset(("int32", "int64"))
TIED = 1e-6
MOST_ROWS = 0.5


@dataclass(frozen=True)
class LabelOutput:
    """A graph output with one class label per sample, and the labels of the score columns."""

    name: str
    classes: ClassLabels


def find_labels(graph: GraphProto, outputs: Iterable[TensorSpec]) -> LabelOutput | None:
    """Return the label output of a classifier whose class labels are known."""
    classes = class_labels(graph)
    if not classes or len(set(classes)) != len(classes):
        return None
    dtypes = {"str"} if isinstance(classes[0], str) else INTEGERS
    found = [
        spec.name
        for spec in outputs
        if spec.dtype in dtypes and all(size in (None, 1) for size in (spec.shape or ())[1:])
    ]
    return LabelOutput(found[0], classes) if len(found) == 1 else None


def add_class_numbers(model: ModelProto, labels: LabelOutput) -> None:
    """Append, in place, the float64 output ``howsure_labels``: the column of each label, or -1."""
    graph = model.graph
    numbers = labels.name
    if isinstance(labels.classes[0], str):
        numbers = f"{LABELS}_encoded"
        graph.node.append(_encoder(model, labels, numbers))
    graph.node.append(helper.make_node("Cast", [numbers], [LABELS], to=TensorProto.DOUBLE))


def check_labels(
    labels: LabelOutput,
    scores: NDArray[np.float64],
    trial: Mapping[str, NDArray[np.floating]],
    *,
    threshold: float,
) -> None:
    """Refuse scores whose largest is of another class than the label output says, for most rows.

    ``threshold`` is the score from which a single column stands for class 1. Rows whose two
    largest scores are equal are left out.

    Raises
    ------
    InvalidOnnxModel
        If they differ on most rows, or there is not one column per class.
    """
    n_columns = max(scores.shape[1], 2)
    if n_columns != len(labels.classes):
        raise InvalidOnnxModel.because(
            ModelRule.LABELS_DIFFER,
            f"it has {n_columns} columns of scores for {len(labels.classes)} classes, as scores "
            "of pairs of classes have; export one column per class",
        )
    if len(trial[LABELS]) != len(scores) or trial[LABELS].size != len(scores):
        return
    own = _columns(trial[LABELS].reshape(-1), labels)
    best, is_clear = _winners(scores, threshold)
    seen = is_clear & (own >= 0)
    differs = seen & (best != own)
    if differs.sum() <= MOST_ROWS * seen.sum():
        return
    row = int(np.argmax(differs))
    raise InvalidOnnxModel.because(
        ModelRule.LABELS_DIFFER,
        f"its scores and its label output {quote(labels.name)} name different classes in "
        f"{int(differs.sum())} of {int(seen.sum())} rows: for row {row} the largest score is that "
        f"of class {labels.classes[best[row]]!r}, the label is {labels.classes[own[row]]!r}. The "
        "columns may be in another order, as skl2onnx writes them for a binary SVC without "
        "probability=True: export probabilities. If the scores are right, set output.kind to "
        "logits or probabilities",
    )


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
    if isinstance(labels.classes[0], str):
        return values.astype(np.int64)
    known = np.array(labels.classes, dtype=np.float64)
    order = np.argsort(known)
    places = np.clip(np.searchsorted(known, values, sorter=order), 0, len(known) - 1)
    columns = order[places]
    return np.where(known[columns] == values, columns, -1)


def _winners(
    scores: NDArray[np.float64], threshold: float
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the column of the largest score of each row, and whether it is the only largest."""
    with np.errstate(invalid="ignore"):
        if scores.shape[1] == 1:
            above = scores[:, 0] - threshold
            return (above > 0).astype(np.int64), np.abs(above) > TIED
        largest = np.sort(scores, axis=1)[:, -2:]
        return scores.argmax(axis=1), largest[:, 1] - largest[:, 0] > TIED
