"""Labels as callers hold them: indices of classes, or names."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def class_indices_of(config: Mapping[str, Any]) -> dict[str, int] | None:
    """Return the index of each class by name, as a configuration gives it; None without names."""
    if config.get("class_map"):
        return dict(config["class_map"])
    names = config.get("classes")
    return None if names is None else positions_of(names)


def positions_of(names: Iterable[str]) -> dict[str, int]:
    """Return the index of each name, without names that several classes have."""
    counts = Counter(names)
    return {name: index for index, name in enumerate(names) if counts[name] == 1}


def label_array(labels: ArrayLike, indices: Mapping[str, int] | None) -> NDArray[Any]:
    """Return labels as an array of numbers, which the service checks.

    Parameters
    ----------
    labels
        An array, list or pandas Series of indices, or of names of classes.
    indices
        The index of each class by name, if names are known.

    Raises
    ------
    ValueError
        If a label is missing, names are not known, or a name is not one of them.
    """
    given = np.asarray(labels)
    if given.shape[1:] == (1,):
        given = given[:, 0]
    if given.dtype.kind not in "OUT":
        return given
    values = given.ravel().tolist()
    for row, value in enumerate(values):
        if value is None or type(value).__name__ == "NAType" or value != value:  # noqa: PLR0124 - NaN
            raise ValueError(
                f"labels[{row}]: expected a class, got {value}; leave out samples without a label"
            )
    if not any(isinstance(value, str) for value in values):
        return np.array(values).reshape(given.shape)
    if indices is None:
        raise ValueError(
            f"labels are names of classes, such as {values[0]!r}: pass these names, too, in the "
            'order of the outputs, classes=["…", "…"], or pass the indices of the classes'
        )
    for row, value in enumerate(values):
        if value not in indices:
            known = ", ".join(repr(name) for name in list(indices)[:5])
            raise ValueError(
                f"labels[{row}]: expected the name of one class only, such as {known}"
                f"{', …' if len(indices) > 5 else ''}, got {value!r}"  # noqa: PLR2004 - shown names
            )
    return np.array([indices[value] for value in values]).reshape(given.shape)
