"""Runs of a model on the rows of a set, a batch at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeAlias, TypeVar

import numpy as np

from howsure.outputs import OutputKind
from howsure.statistics.arrays import Floats
from service.errors import InvalidInput, InvalidOnnxModel, ModelRule
from service.runner.messages.frames import Array


def class_logs(scores: Array, kind: OutputKind) -> Floats:
    """Return logits as they are, and probabilities as their logarithms, float64 (n, n_classes)."""
    wide: Floats = scores.astype(np.float64)
    if kind == "logits":
        return wide
    with np.errstate(divide="ignore"):  # log 0 is -inf: a class that is ruled out
        return np.asarray(np.log(np.maximum(wide, 0.0)))  # rounding may leave a -1e-9


def log_probabilities(scores: Array, kind: OutputKind) -> Floats:
    """Return the logarithms of the classes' probabilities, which sum to one, float64.

    A row that is not finite gives NaN.
    """
    logs = class_logs(scores, kind)
    with np.errstate(invalid="ignore", over="ignore"):
        relative = logs - logs.max(axis=1, keepdims=True)
        return np.asarray(relative - np.log(np.exp(relative).sum(axis=1, keepdims=True)))


def apply_to_finite_rows(compute: Callable[..., Floats], *arrays: Floats) -> Floats:
    """Return ``compute(*arrays)``, and NaN for rows without a valid answer.

    Such rows have NaN or +inf, or -inf for all classes (the last axis). ``compute`` takes and
    returns arrays with a row a sample; rows must be independent.
    """
    bad = np.zeros(len(arrays[0]), dtype=np.bool_)
    for array in arrays:
        lines = array.reshape(len(array), -1)
        bad |= (np.isnan(lines) | np.isposinf(lines)).any(axis=1)
        bad |= np.isneginf(array).all(axis=-1).reshape(len(array), -1).any(axis=1)
    if not bad.any():
        return compute(*arrays)
    stand_in = [np.where(bad.reshape(-1, *[1] * (a.ndim - 1)), _uniform(a), a) for a in arrays]
    found = compute(*stand_in)
    found[bad] = np.nan
    return found


def _uniform(array: Floats) -> float:
    """Return the log-probability of each class of a uniform distribution."""
    return -float(np.log(array.shape[-1]))


Item = TypeVar("Item")
Made = TypeVar("Made")


def map_ahead(items: Iterable[Item], make: Callable[[Item], Made]) -> list[Made]:
    """Return the results of ``make`` in order, computed on a second thread during the iteration.

    At most one item waits. The first failure, of ``items`` or of ``make``, is raised; that of an
    earlier item comes first.
    """
    made: list[Future[Made]] = []
    with ThreadPoolExecutor(1, thread_name_prefix="map-ahead") as beside:
        try:
            for item in items:
                if made:
                    made[-1].result()
                made.append(beside.submit(make, item))
        except BaseException:
            if made:
                made[-1].result()
            raise
    return [future.result() for future in made]


MAX_BATCH_ROWS = 256
MAX_BATCH_INPUT_BYTES = 2**25
# Of a run that answers requests on a GPU: 256 pictures of 3 x 224 x 224 float32 go together.
MAX_CUDA_INPUT_BYTES = 2**28
MAX_BATCH_NUMBERS = 2**21

# Returns arrays with one row for each row of a batch; the text names the rows in errors.
Run: TypeAlias = Callable[[Mapping[str, Array], str], Mapping[str, Array]]


def batch_rows(
    inputs: Mapping[str, Array],
    numbers: int,
    fixed_batch: int | None,
    *,
    most_bytes: int = MAX_BATCH_INPUT_BYTES,
) -> int:
    """Return how many rows go through a model at a time: a power of two that depends on their size.

    ``numbers`` is how many numbers a row takes at once before they are reduced.
    """
    if fixed_batch is not None:
        return fixed_batch
    row_bytes = 0
    for array in inputs.values():
        row_bytes += array.nbytes // len(array)
    most = min(most_bytes // max(row_bytes, 1), MAX_BATCH_NUMBERS // max(numbers, 1))
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
        try:
            answer = run(feeds, place)
        except InvalidInput as error:
            if error.violations[0].rule == ModelRule.RUN_FAILED and n_real > 1:
                failure = _failure_of_row(
                    run,
                    {name: array[first : first + n_real] for name, array in inputs.items()},
                    n_fed=n_fed if pad else None,
                    location=location,
                    start=start + first,
                )
                raise failure or error from None
            raise
        for output in answer.values():
            if output.ndim == 0 or len(output) != n_fed:
                raise InvalidOnnxModel.because(
                    ModelRule.OUTPUT_ROWS,
                    f"the output has the shape {output.shape} for {n_fed} samples; expected one "
                    "row per sample",
                )
        yield first, {name: output[before : before + n_real] for name, output in answer.items()}
        first += n_real


def _failure_of_row(
    run: Run, rows: Mapping[str, Array], *, n_fed: int | None, location: str, start: int
) -> InvalidInput | None:
    """Return the error of the first row that a model does not take, found by halves.

    Return None where it takes each row alone, or neither the first nor the last. ``start`` is the
    number of the first row; copies fill the runs up to ``n_fed`` rows, if that is fixed.
    """

    def failure(low: int, high: int) -> InvalidInput | None:
        n_rows = n_fed or high - low
        feeds = {name: padded(array[low:high], 0, n_rows) for name, array in rows.items()}
        try:
            run(feeds, f"{location}[{start + low}]")
        except InvalidInput as error:
            return error
        return None

    low, high = 0, len(next(iter(rows.values())))
    if failure(low, low + 1) is not None and failure(high - 1, high) is not None:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if failure(low, middle) is not None else (middle, high)
    return failure(low, high)


def join_parts(parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Return the rows of all parts together, by name."""
    if len(parts) == 1:
        return dict(parts[0])
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def padded(rows: Array, before: int, length: int) -> Array:
    """Return ``length`` rows: copies of the first, the rows, copies of the last."""
    if len(rows) == length:
        return rows
    places = np.clip(np.arange(length) - before, 0, len(rows) - 1)
    return np.asarray(rows[places])
