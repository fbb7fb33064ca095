"""The columns of a result, under the names that the service gives its arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.cli.scoring.source import FILE, TRUE_LABEL

Column = NDArray[Any]
Columns = dict[str, Column]
ROW, CLASS, LABEL = "row", "class", "label"


def names_of(stored: Mapping[str, Column]) -> list[str]:
    """Return the names of a part's arrays, in the order they are written in.

    First ``row``, what the input says of it (``file``, ``true_label``), ``class`` and ``label``;
    then what the service told, in its order.
    """
    front = [name for name in (FILE, TRUE_LABEL) if name in stored]
    rest = [name for name in stored if name not in {*front, CLASS}]
    return [ROW, *front, CLASS, LABEL, *rest]


def array_of(
    stored: Mapping[str, Column], name: str, rows: range, classes: Sequence[str]
) -> Column:
    """Return one of them."""
    if name == ROW:
        return np.arange(rows.start, rows.stop, dtype=np.int64)
    if name == LABEL:
        # All as wide as the widest name: a part alone looks like any other.
        return np.array(classes, dtype=np.str_)[stored[CLASS]]
    return stored[name]


def flat(columns: Columns) -> Columns:
    """Return every array as columns: ``topk_class_1`` is the most probable class, and so on."""
    found: Columns = {}
    for name, array in columns.items():
        if array.ndim == 1:
            found[name] = array
        else:
            found |= {f"{name}_{k}": array[:, k - 1] for k in range(1, array.shape[1] + 1)}
    return found
