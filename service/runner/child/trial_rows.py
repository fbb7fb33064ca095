"""The first rows of a calibration set, on which a model is tried and its runs are timed."""

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from service.core.arrays import Floats
from service.errors import InvalidConfig
from service.runner.child.batches import batch_rows, padded
from service.runner.child.model_inputs import ModelInputs
from service.runner.frames import Array

MAX_TIMED_ROWS = 32
MAX_TIMED_RUNS = 1024  # rows times passes: a trial is no calibration
TIMED_PASSES = 8  # of many, so that more rows can be timed
REPETITIONS = 3


def fitted_trial(
    trial: Mapping[str, Array], inputs: ModelInputs, location: str
) -> dict[str, Array]:
    """Return the trial rows as the model takes them.

    Raises
    ------
    InvalidConfig
        If its inputs cannot be what pictures are made.
    InvalidInput
        If the rows do not suit it.
    """
    inputs.check_preprocessing()
    return inputs.fitted(trial, location=location, start=0)


def timed_rows(
    inputs: Mapping[str, Array], fixed_batch: int | None, passes: Sequence[int], *, numbers: int
) -> dict[str, Array]:
    """Return a few rows, fewer where each takes many passes; of a fixed batch exactly that many.

    They are no more than a batch: ``numbers`` is how many one row makes before they are summed up.
    """
    most = min(MAX_TIMED_ROWS, MAX_TIMED_RUNS // max((1, *passes)))
    most = min(max(1, most), batch_rows(inputs, numbers, None))
    return first_rows(inputs, most, fixed_batch)


def first_rows(
    inputs: Mapping[str, Array], n_rows: int, fixed_batch: int | None
) -> dict[str, Array]:
    """Return at most so many rows; of a fixed batch exactly that many."""
    if fixed_batch is None:
        return {name: array[:n_rows] for name, array in inputs.items()}
    return {name: padded(array[:fixed_batch], 0, fixed_batch) for name, array in inputs.items()}


def milliseconds_a_row(
    run: Callable[[], object], n_rows: int, *, repeat: int = REPETITIONS
) -> float:
    """Return the least time of a few runs, the first of which may also warm up."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return 1000.0 * min(times) / n_rows


def check_spread(measure: str, values: Floats, passes: int, advice: str) -> None:
    """Refuse a measure that is zero for every row tried: it would rank nothing.

    Raises
    ------
    InvalidConfig
        With this advice.
    """
    if not np.any(values):
        rows = "the first row" if len(values) == 1 else f"each of the first {len(values)} rows"
        raise InvalidConfig.at(
            "config.measures", f"{measure} is zero for {rows} over {passes} passes: {advice}"
        )
