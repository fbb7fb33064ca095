"""Labels as callers hold them: indices of classes, or names."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

SHOWN_NAMES = 5


def class_indices_of(config: Mapping[str, Any]) -> dict[str, int] | None:
    """Return the index of each class name in a configuration, or None if it names no classes."""
    if config.get("class_map"):
        return dict(config["class_map"])
    names = config.get("classes")
    return None if names is None else positions_of(names)


def positions_of(names: Iterable[str]) -> dict[str, int]:
    """Return the index of each name, without names that several classes have."""
    counts = Counter(names)
    return {name: index for index, name in enumerate(names) if counts[name] == 1}


def label_array(labels: ArrayLike, indices: Mapping[str, int] | None) -> NDArray[Any]:
    """Return labels as an array of numbers, or of names, which the service checks.

    Parameters
    ----------
    labels
        An array, list or pandas Series of indices, or of names of classes.
    indices
        The index of each class by name. With None, the service looks names up.

    Raises
    ------
    ValueError
        If a label is missing, or a name is not one of those that are known.
    """
    given = np.asarray(labels)
    if given.shape[1:] == (1,):
        given = given[:, 0]
    if given.dtype.kind not in "OUT":
        return given
    values = given.ravel().tolist()
    for row, value in enumerate(values):
        if is_missing(value):
            raise ValueError(
                f"labels[{row}]: expected a class, got {value}; leave out samples without a label"
            )
    if not any(isinstance(value, str) for value in values):
        return np.array(values).reshape(given.shape)
    if indices is None:  # the service knows the model's own names
        return np.array([str(value) for value in values]).reshape(given.shape)
    for row, value in enumerate(values):
        if value not in indices:
            known = ", ".join(repr(name) for name in list(indices)[:SHOWN_NAMES])
            more = ", …" if len(indices) > SHOWN_NAMES else ""
            raise ValueError(
                f"labels[{row}]: expected the name of one class only, such as {known}{more}, got "
                f"{value!r}"
            )
    return np.array([indices[value] for value in values]).reshape(given.shape)


def is_missing(value: object) -> bool:
    """Tell whether a label is None, NaN or pandas' NA, which cannot be compared."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ == "NAType"
