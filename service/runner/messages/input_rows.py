"""The rows of a request to a child: checked, and cut into chunks."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidDataset, InvalidInput
from service.runner.messages.frames import MAX_RANK, Array, code_of

CHUNK_ROWS = 256
# Rows of a RECORD request: several runs, each made into records during the next.
RECORDED_ROWS = 2048


def check_inputs(inputs: Mapping[str, Array], location: str, invalid: type[InvalidInput]) -> None:
    """Refuse arrays that are not rows of numbers; the child checks the rest.

    Raises
    ------
    InvalidInput
        If there is no array or no row, an array does not hold numbers, or the numbers of rows
        differ.
    """
    if not inputs:
        raise invalid.at(location, "expected at least one array")
    for name, array in inputs.items():
        place = f"{location}.{name}"
        if code_of(array.dtype) is None:
            raise invalid.at(place, f"expected numbers, got {array.dtype}")
        if not 1 <= array.ndim <= MAX_RANK or not len(array):
            raise invalid.at(place, f"expected at least one row, got shape {list(array.shape)}")
    lengths = {name: len(array) for name, array in inputs.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name!r} {rows}" for name, rows in lengths.items())
        raise invalid.at(location, f"every input needs the same number of rows: {counts}")


def check_labels(
    labels: Array, *, n_rows: int, n_classes: int, location: str, start: int
) -> NDArray[np.int64]:
    """Return the labels as int64; ``start`` is the number of the first row.

    Raises
    ------
    InvalidDataset
        If they are not one class index a row.
    """
    place = f"{location}.labels"
    if labels.shape != (n_rows,) or labels.dtype.kind not in "iu":
        raise InvalidDataset.at(
            place,
            f"expected {n_rows} integers, one per row, got {labels.dtype} of shape "
            f"{list(labels.shape)}",
        )
    bad = (labels < 0) | (labels >= n_classes)
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidDataset.at(
            f"{place}[{start + row}]",
            f"expected an integer from 0 to {n_classes - 1}, got {int(labels[row])}",
        )
    return labels.astype(np.int64, copy=False)


def chunks(
    inputs: Mapping[str, Array],
    *,
    fixed_batch: int | None,
    start: int,
    at_a_time: int = CHUNK_ROWS,
) -> Iterator[tuple[slice, dict[str, Array]]]:
    """Yield ranges of rows with their arrays, small enough that other callers get their turn.

    ``start`` is the number of the first row. The cuts fall on the same rows of a set however it
    is divided between calls, and there the child's batches end as well.
    """
    n_rows = len(next(iter(inputs.values())))
    batch = fixed_batch or 1
    size = batch * -(-at_a_time // batch)
    first = 0
    while first < n_rows:
        rows = slice(first, min(first + size - (start + first) % size, n_rows))
        yield rows, {name: array[rows] for name, array in inputs.items()}
        first = rows.stop
