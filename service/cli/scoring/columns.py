"""The columns of a result, under the names that the service gives its arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.cli.scoring.source import TRUE_LABEL

Column = NDArray[Any]
Columns = dict[str, Column]
ROW, CLASS, LABEL = "row", "class", "label"


def named(stored: Mapping[str, Column], rows: range, classes: Sequence[str]) -> Columns:
    """Return the arrays of a part with its rows' numbers and the names of their classes.

    First ``row``, ``true_label`` if the input has labels, ``class`` and ``label``; then what the
    service told, in its order.
    """
    told = dict(stored.items())
    front: Columns = {ROW: np.arange(rows.start, rows.stop, dtype=np.int64)}
    if TRUE_LABEL in told:
        front[TRUE_LABEL] = told.pop(TRUE_LABEL)
    front[CLASS] = told.pop(CLASS)
    front[LABEL] = _names(classes)[front[CLASS]]
    return {**front, **told}


def flat(columns: Columns) -> Columns:
    """Return every array as columns: ``topk_class_1`` is the most probable class, and so on."""
    found: Columns = {}
    for name, array in columns.items():
        if array.ndim == 1:
            found[name] = array
        else:
            found |= {f"{name}_{k}": array[:, k - 1] for k in range(1, array.shape[1] + 1)}
    return found


def _names(classes: Sequence[str]) -> Column:
    """Return the names as an array, all as wide as the widest: a part alone looks like any."""
    return np.array(classes, dtype=np.str_)
