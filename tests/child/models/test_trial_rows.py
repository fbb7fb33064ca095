"""How many of the first rows a model is tried on."""

import numpy as np
import pytest

from service.child.onnx.batches import MAX_BATCH_NUMBERS
from service.child.onnx.trial import timed_rows

INPUTS = {"x": np.zeros((256, 3), dtype=np.float32)}


@pytest.mark.parametrize("passes", [1, 20, 1000])
@pytest.mark.parametrize("n_classes", [2, 1000, 100_000])
def test_the_timed_rows_fit_into_a_batch(passes, n_classes):
    numbers = passes * n_classes
    rows = timed_rows(INPUTS, None, [passes], numbers=numbers)["x"]
    assert len(rows) == 1 or len(rows) * numbers <= MAX_BATCH_NUMBERS
    assert 1 <= len(rows) <= 32


def test_a_fixed_batch_is_timed_whole():
    assert len(timed_rows(INPUTS, 8, [1000], numbers=10**8)["x"]) == 8
