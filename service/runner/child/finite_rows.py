"""Arithmetic on the rows that have an answer; the others stay visible as NaN."""

from collections.abc import Callable

import numpy as np

from service.core.arrays import Floats


def on_finite_rows(compute: Callable[..., Floats], *arrays: Floats) -> Floats:
    """Return ``compute(*arrays)``, NaN for each row for which an array holds what is no answer.

    That is NaN or +inf, and -inf for all classes, which the last axis is of.
    ``compute`` takes and gives arrays with a row a sample; no row may see another.
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
    """Return a logarithm that every class may have at once."""
    return -float(np.log(array.shape[-1]))
