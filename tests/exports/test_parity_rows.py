"""Number of rows on which an exported file is compared."""

import pytest

from service.exports.export import parity_rows
from service.runner.messages.frames import MAX_TENSOR_BYTES

IMAGE = 4 * 3 * 1024 * 1024


@pytest.mark.parametrize("row_bytes", [0, 4, 3136, IMAGE, MAX_TENSOR_BYTES])
def test_they_fit_one_request(row_bytes):
    assert 1 <= parity_rows(row_bytes) <= 1000
    assert parity_rows(row_bytes) * row_bytes <= MAX_TENSOR_BYTES


def test_small_rows_are_a_thousand():
    assert parity_rows(3136) == 1000
