"""Answers of the passes, where they enter the statistics."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

THREE_DIMENSIONS = 3
LEAST_CLASSES = 2
LARGEST_LOG_PROBABILITY = 1e-3
BLOCK_ELEMENTS = 2**20


def as_log_probabilities(values: ArrayLike) -> NDArray[np.floating]:
    """Return log-probabilities of shape (n_samples, n_passes, n_classes), in the precision given.

    Raises
    ------
    ValueError
        If there are fewer axes, no pass or fewer than two classes, or an answer holds NaN or a
        number above 0 by more than rounding, or rules out every class. ``-inf`` stands for a
        class that is ruled out.
    """
    array = np.asarray(values)
    if array.ndim != THREE_DIMENSIONS or array.shape[1] < 1 or array.shape[2] < LEAST_CLASSES:
        raise ValueError(
            "log_probabilities must have shape (n_samples, n_passes >= 1, n_classes >= 2), "
            f"not {array.shape}"
        )
    if not np.issubdtype(array.dtype, np.floating):
        raise ValueError(f"log_probabilities must be floating, not {array.dtype}")
    largest = array.max(axis=2)  # NaN where one is
    bad = ~(np.isfinite(largest) & (largest <= LARGEST_LOG_PROBABILITY))
    if bad.any():
        row, number = (int(index) for index in np.argwhere(bad)[0])
        raise ValueError(
            "log_probabilities must be at most 0, and finite for one class at least: "
            f"pass {number} of row {row} is not"
        )
    return array


def row_blocks(array: NDArray[np.floating]) -> Iterator[NDArray[np.float64]]:
    """Yield rows in float64, a few megabytes at a time, so that memory does not grow with them."""
    n_samples, n_passes, n_classes = array.shape
    step = max(1, BLOCK_ELEMENTS // (n_passes * n_classes))
    for start in range(0, max(n_samples, 1), step):
        # C order, so that each row is summed in one order whatever the layout of the array.
        yield array[start : start + step].astype(np.float64, order="C")
