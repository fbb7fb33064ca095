"""Checks of what the reader of a set answers: it may be in the hands of whoever wrote the file.

Values are not checked again: a wrong one spoils nothing but its sender's own calibration. All that
the service counts, allocates or stores by is checked.
"""

import numpy as np

from howsure.statistics.arrays import Labels
from service.child.reading.checks import MIN_CLASSES, is_finite, supplied_names
from service.child.reading.open_set import FORMATS
from service.errors import InvalidInput
from service.runner.messages.convert import FieldError, check_bounds
from service.runner.messages.dataset import (
    MAX_ARRAYS,
    MAX_NAME_LENGTH,
    ArrayInfo,
    Batch,
    DatasetInfo,
)
from service.runner.messages.frames import DTYPES, MAX_RANK, Array
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.set_messages import OpenedSet, SetToRead, trial_rows

MAX_NOTES = 20
MATRIX_RANK = 2


def check_opened(found: OpenedSet, asked: SetToRead, limits: DatasetLimits) -> None:
    """Check what is told of a set that was opened.

    Raises
    ------
    FieldError
        If it holds what cannot be.
    """
    info = found.info
    _check_counts(info, limits)
    if info.format not in FORMATS or not 1 <= len(info.arrays) <= MAX_ARRAYS:
        raise FieldError("the format of a set, or the number of its arrays")
    for name, array in info.arrays.items():
        _check_array(name, array, info)
    if info.row_bytes > limits.max_row_bytes:
        raise FieldError("the bytes of a row")
    try:
        named = supplied_names((f"uncertainty_{name}" for name in info.supplied), location="")
    except InvalidInput as error:
        raise FieldError("the names of supplied columns") from error
    if len(set(named)) != len(named):
        raise FieldError("the names of supplied columns")
    _check_texts(info, asked, limits)
    _check_labels(found.labels, info, limits)
    n_trial = min(trial_rows(info), info.n_samples)
    check_rows(found.trial, info, found.labels, start=0, n_rows=n_trial)


def check_rows(
    batch: Batch, info: DatasetInfo, labels: Labels | None, *, start: int, n_rows: int
) -> None:
    """Check some rows of a set against what was told of it.

    Raises
    ------
    FieldError
        If they are others.
    """
    if batch.start != start or batch.arrays.keys() != info.arrays.keys():
        raise FieldError("other rows, or other arrays")
    if set(batch.supplied) != set(info.supplied):
        raise FieldError("other supplied columns")
    for name, array in batch.arrays.items():
        told = info.arrays[name]
        if array.dtype != DTYPES[told.dtype] or array.shape != (n_rows, *told.shape[1:]):
            raise FieldError(f"the array {name!a}")
        if info.kind != "inputs" and not is_finite(array):
            raise FieldError("outputs that are not finite")
    for values in batch.supplied.values():
        if values.dtype != np.float64 or values.shape != (n_rows,):
            raise FieldError("a supplied column")
    expected = np.zeros(n_rows, np.int64) if labels is None else labels[start : start + n_rows]
    if batch.labels.dtype != np.int64 or not np.array_equal(batch.labels, expected):
        raise FieldError("other labels")


def _check_counts(info: DatasetInfo, limits: DatasetLimits) -> None:
    if not 1 <= info.n_samples <= limits.max_samples:
        raise FieldError("the number of samples")
    if info.kind == "inputs":
        if info.n_classes is not None:
            raise FieldError("classes of inputs")
        return
    n_classes = info.n_classes or 0
    if not MIN_CLASSES <= n_classes <= limits.max_classes or info.arrays.keys() != {info.kind}:
        raise FieldError("the outputs of a set")
    array = info.arrays[info.kind]
    if len(array.shape) != MATRIX_RANK or array.shape[1] != n_classes:
        raise FieldError("the shape of outputs")
    if not array.dtype.startswith("float"):
        raise FieldError("the type of outputs")


def _check_array(name: str, array: ArrayInfo, info: DatasetInfo) -> None:
    if array.dtype not in DTYPES or not 1 <= len(array.shape) <= MAX_RANK:
        raise FieldError("the type or the rank of an array")
    if array.shape[0] != info.n_samples:
        raise FieldError("the rows of an array")
    if min(array.shape) < 1:
        raise FieldError("an empty axis of an array")
    if not name.isprintable() or len(name) > MAX_NAME_LENGTH:
        raise FieldError("the name of an array")


def _check_texts(info: DatasetInfo, asked: SetToRead, limits: DatasetLimits) -> None:
    if len(info.notes) > MAX_NOTES:
        raise FieldError("the number of notes")
    classes = info.class_map or {}
    if len(classes) > max(limits.max_classes, len(asked.reading.class_map or {})):
        raise FieldError("the number of classes")
    if min(classes.values(), default=0) < 0:
        raise FieldError("a class index below 0")
    check_bounds([*info.notes, classes])


def _check_labels(labels: Array | None, info: DatasetInfo, limits: DatasetLimits) -> None:
    if info.labelled != (labels is not None):
        raise FieldError("labels of a set that has none, or none of one that has")
    if labels is None:
        return
    if labels.dtype != np.int64 or labels.shape != (info.n_samples,):
        raise FieldError("the labels of a set")
    if labels.min() < 0 or labels.max() >= (info.n_classes or limits.max_classes):
        raise FieldError("a label that is no class")
