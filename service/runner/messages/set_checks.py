"""Checks of the answers of the process that reads a set, which the author of the file may control.

Values are not checked again: wrong values only spoil the sender's own calibration. Everything that
the service uses to count, allocate or store is checked.
"""

import numpy as np

from howsure.limits import MAX_NAME_LENGTH, MOST_TEXTS
from howsure.statistics.arrays import NONE_OF_THESE, Labels
from service.child.reading.checks import MIN_CLASSES, is_finite, supplied_names
from service.child.reading.open_set import FORMATS
from service.errors import InvalidInput
from service.runner.messages.convert import FieldError
from service.runner.messages.dataset import DESIGN_DTYPES, MAX_ARRAYS, Batch, DatasetInfo, is_word
from service.runner.messages.frames import DTYPES, MAX_RANK, Array
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.onnx_models import ANY_INPUT
from service.runner.messages.set_messages import OpenedSet, SetToRead, trial_rows

MAX_NOTES = 20


def check_opened(found: OpenedSet, asked: SetToRead, limits: DatasetLimits) -> None:
    """Check the description of an opened set.

    Raises
    ------
    FieldError
        If an honest process cannot have made it.
    """
    info = found.info
    _check_counts(info, limits)
    _require("the format of a set", info.format in FORMATS)
    _require("the number of arrays", 1 <= len(info.arrays) <= MAX_ARRAYS)
    for name, array in info.arrays.items():
        _require("the type of an array", array.dtype in DTYPES)
        _require("the rank of an array", 1 <= len(array.shape) <= MAX_RANK)
        _require("the rows of an array", array.shape[0] == info.n_samples, min(array.shape) >= 1)
        _require("the name of an array", name.isprintable(), len(name) <= MAX_NAME_LENGTH)
    _require("the bytes of a row", info.row_bytes <= limits.max_row_bytes)
    try:
        named = supplied_names((f"uncertainty_{name}" for name in info.supplied), location="")
    except InvalidInput as error:
        raise FieldError("the names of supplied columns") from error
    _require("the names of supplied columns", len(set(named)) == len(named))
    _require("the sampling design", set(info.design) <= DESIGN_DTYPES.keys())
    _check_texts(info, asked, limits)
    _check_labels(found.labels, info, asked, limits)
    n_trial = min(trial_rows(info), info.n_samples)
    check_rows(found.trial, info, found.labels, start=0, n_rows=n_trial)


def check_rows(
    batch: Batch, info: DatasetInfo, labels: Labels | None, *, start: int, n_rows: int
) -> None:
    """Check some rows of a set against its description.

    Raises
    ------
    FieldError
        If they differ.
    """
    _require("the rows", batch.start == start)
    _require("the arrays", batch.arrays.keys() == info.arrays.keys())
    _require("the supplied columns", batch.supplied.keys() == set(info.supplied))
    for name, array in batch.arrays.items():
        told = info.arrays[name]
        shape = (n_rows, *told.shape[1:])
        _require(f"the array {name!a}", array.dtype == DTYPES[told.dtype], array.shape == shape)
        _require("finite outputs", info.kind == "inputs" or is_finite(array))
    for values in batch.supplied.values():
        _require("a supplied column", values.dtype == np.float64, values.shape == (n_rows,))
        _require("a supplied number", bool((np.abs(values) <= np.finfo(np.float32).max).all()))
    _require("the sampling design", batch.design.keys() == set(info.design))
    for name, column in batch.design.items():
        _require(f"the {name}", column.dtype == DESIGN_DTYPES[name], column.shape == (n_rows,))
    weights = batch.design.get("weight", np.ones(1))
    _require("a weight", bool(((weights > 0) & np.isfinite(weights)).all()))
    expected = np.zeros(n_rows, np.int64) if labels is None else labels[start : start + n_rows]
    _require("the labels", batch.labels.dtype == np.int64, np.array_equal(batch.labels, expected))


def _require(what: str, *facts: bool) -> None:
    """Refuse a message, which is wrong about ``what``, unless all facts hold."""
    if not all(facts):
        raise FieldError(what)


def _check_counts(info: DatasetInfo, limits: DatasetLimits) -> None:
    _require("the number of samples", 1 <= info.n_samples <= limits.max_samples)
    if info.kind == "inputs":
        _require("classes of inputs", info.n_classes is None)
        return
    n_classes = info.n_classes or 0
    _require("the number of classes", MIN_CLASSES <= n_classes <= limits.max_classes)
    _require("the arrays of outputs", info.arrays.keys() == {info.kind})
    array = info.arrays[info.kind]
    _require("the shape of outputs", array.shape == (info.n_samples, n_classes))
    _require("the type of outputs", array.dtype.startswith("float"))


def _check_texts(info: DatasetInfo, asked: SetToRead, limits: DatasetLimits) -> None:
    classes = info.class_map or {}
    most = max(limits.max_classes, 1 + max((asked.reading.class_map or {"": 0}).values()))
    _require("the notes", len(info.notes) <= MAX_NOTES, all(map(str.isprintable, info.notes)))
    _require("the class map", all(0 <= index < most for index in classes.values()))
    for name, texts in info.texts.items():
        _require("texts", all(map(is_word, [name, *texts])), 0 < len(texts) <= MOST_TEXTS)
    features = set(info.columns.get(ANY_INPUT, ()))
    is_more = ANY_INPUT in info.columns and features < {*info.possible_features}
    _require("possible features", is_more or not info.possible_features)


def _check_labels(
    labels: Array | None, info: DatasetInfo, asked: SetToRead, limits: DatasetLimits
) -> None:
    _require("whether a set has labels", info.labelled == (labels is not None))
    if labels is not None:
        _require("the labels of a set", labels.dtype == np.int64, labels.shape == (info.n_samples,))
        most = info.n_classes or limits.max_classes
        least = NONE_OF_THESE if asked.reading.may_be_none_of_these else 0
        _require("a label", labels.min() >= least, labels.max() < most)
