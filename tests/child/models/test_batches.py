"""Batches of rows: how many are timed, and work on one answer while the next is awaited."""

import numpy as np
import pytest

from service.child.onnx.batches import (
    MAX_BATCH_NUMBERS,
    MAX_CUDA_INPUT_BYTES,
    batch_rows,
    map_ahead,
)
from service.child.onnx.trial import timed_rows

INPUTS = {"x": np.zeros((256, 3), dtype=np.float32)}


def test_the_timed_rows_fit_into_a_batch_and_a_fixed_batch_is_timed_whole():
    for numbers in (2, 100_000, 10**8):
        n_rows = len(timed_rows(INPUTS, None, [20], numbers=numbers)["x"])
        assert n_rows == 1 or n_rows * numbers <= MAX_BATCH_NUMBERS
        assert 1 <= n_rows <= 32
    assert len(timed_rows(INPUTS, 8, [1000], numbers=10**8)["x"]) == 8


def test_256_pictures_are_one_run_on_a_gpu_and_eight_elsewhere():
    pictures = {"x": np.broadcast_to(np.float32(0.0), (256, 3, 224, 224))}
    assert batch_rows(pictures, 1000, None) == 32
    assert batch_rows(pictures, 1000, None, most_bytes=MAX_CUDA_INPUT_BYTES) == 256


def test_the_failure_of_an_earlier_item_comes_first():
    def items():
        yield from "01"
        raise ValueError("the next one cannot be had")

    assert map_ahead("01", int) == [0, 1]
    with pytest.raises(ValueError, match="the next one"):
        map_ahead(items(), int)
    with pytest.raises(ZeroDivisionError):
        map_ahead(items(), lambda item: 1 // int(item))
