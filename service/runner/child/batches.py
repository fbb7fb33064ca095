"""Rows of a set, a batch at a time."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from service.errors import InvalidOnnxModel
from service.model_rules import ModelRule
from service.runner.frames import Array

MAX_BATCH_ROWS = 256
MAX_BATCH_INPUT_BYTES = 2**25
MAX_BATCH_NUMBERS = 2**21

# Answers a batch of rows, which are called so in errors, by arrays with a row for each.
Run: TypeAlias = Callable[[Mapping[str, Array], str], Mapping[str, Array]]


def batch_rows(inputs: Mapping[str, Array], numbers: int, fixed_batch: int | None) -> int:
    """Return how many rows go through a model at a time: a power of two, by their size alone.

    ``numbers`` is how many the answer holds for a row before it is summed up.
    """
    if fixed_batch is not None:
        return fixed_batch
    row_bytes = 0
    for array in inputs.values():
        row_bytes += array.nbytes // len(array)
    most = min(MAX_BATCH_INPUT_BYTES // max(row_bytes, 1), MAX_BATCH_NUMBERS // max(numbers, 1))
    return 1 << (min(max(most, 1), MAX_BATCH_ROWS).bit_length() - 1)


def run_batches(
    run: Run,
    inputs: Mapping[str, Array],
    *,
    size: int,
    pad: bool,
    location: str,
    start: int,
) -> Iterator[tuple[int, dict[str, Array]]]:
    """Run all rows, ``size`` at a time, and yield each first row's position with the answer.

    With ``pad`` all batches are full: each row stands at its own place, the number of the row
    modulo ``size``, and copies of its neighbours stand where there is none. The runtime's kernels
    round by the place of a row in the batch, but not by what stands in the other places; so an
    answer does not depend on how a set was divided. ``start`` is the number of the first row.

    Raises
    ------
    InvalidOnnxModel
        If the model does not answer one row for each it was given.
    """
    n_rows = len(next(iter(inputs.values())))
    first = 0
    while first < n_rows:
        before = (start + first) % size if pad else 0
        n_real = min(size - before, n_rows - first)
        n_fed = size if pad else n_real
        feeds = {
            name: padded(array[first : first + n_real], before, n_fed)
            for name, array in inputs.items()
        }
        place = f"{location}[{start + first}:{start + first + n_real}]"
        answer = run(feeds, place)
        for output in answer.values():
            if output.ndim == 0 or len(output) != n_fed:
                raise InvalidOnnxModel.because(
                    ModelRule.OUTPUT_ROWS,
                    f"the output has the shape {output.shape} for {n_fed} samples; expected one "
                    "row per sample",
                )
        yield first, {name: output[before : before + n_real] for name, output in answer.items()}
        first += n_real


def padded(rows: Array, before: int, length: int) -> Array:
    """Return ``length`` rows: copies of the first, the rows, copies of the last."""
    if len(rows) == length:
        return rows
    places = np.clip(np.arange(length) - before, 0, len(rows) - 1)
    return np.asarray(rows[places])
