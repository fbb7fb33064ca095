"""Rows of one known shape: read as the other reader reads them, or left to it."""

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.child.requests.json_body import JsonRows
from service.child.requests.limits import BodyLimits
from service.child.requests.media_types import read_json_body
from service.child.requests.predict_request import check_finite

LIMITS = BodyLimits(max_bytes=2**20, max_rows=4)
LARGEST = float(np.finfo(np.float32).max)
ROWS = np.random.default_rng(0).normal(size=(3, 2, 5)).round(3)


def body(inputs, **more):
    return json.dumps({"calibration": "demo", "inputs": inputs, **more}).encode()


def read(text, sizes=(2, 5)):
    return JsonRows(sizes).read(text, calibration="demo", max_rows=LIMITS.max_rows)


@pytest.mark.parametrize("shape", [(3, 10), (3, 2, 5), (1, 1, 5, 2), (2, 1)])
def test_rows_are_the_same_as_with_the_general_reader(shape):
    sent = np.random.default_rng(1).normal(size=shape) * 10.0 ** np.arange(shape[-1])
    text = json.dumps({"inputs": sent.tolist(), "calibration": "demo"}, indent=1).encode()
    found = read(text, shape[1:])
    assert found.dtype == np.float32
    other = read_json_body(text, limits=LIMITS).arrays["inputs"]
    np.testing.assert_array_equal(found, other.astype(np.float32))


TEXT = body(ROWS.tolist())
OTHERS = [
    *(b"", b"\xff", b"[" * 100_000, body([]), TEXT[:-1], TEXT + b"}"),
    body(ROWS.tolist(), more=1),
    body(ROWS.tolist(), supplied={"depth": [1, 2, 3]}),
    body(ROWS.tolist(), calibration="other"),
    TEXT.replace(b"demo", b"d\xffmo"),
    body({"x": ROWS.tolist()}),
    *map(body, (ROWS.reshape(3, 10).tolist(), ROWS[:, :, :4].tolist(), [*ROWS.tolist()] * 2)),
    body([*ROWS.tolist(), [[1, 2, 3, 4, 5], [1, 2, 3, 4]]]),
    *(
        TEXT.replace(str(ROWS[1, 1, 3]).encode(), number)
        for number in (b'"1"', b"true", b"null", b"NaN", b"Infinity", b"1e39", b"1e999")
    ),
    body([[[LARGEST, 1, 2, 3, 3.4028234663852887e38], [0] * 5]]),
]


@pytest.mark.parametrize("text", OTHERS, ids=range(len(OTHERS)))
def test_anything_else_is_left_to_the_general_reader(text):
    assert read(text) is None


@given(st.floats(width=64) | st.integers())
@example(2)
def test_no_number_is_read_that_the_general_reader_refuses(number):
    text = body([[0.5, number]])
    rows = read(text, (2,))
    if rows is None:
        assert number != 2
        return
    arrays = read_json_body(text, limits=LIMITS).arrays
    check_finite(arrays, ["x"], may_lack=(), columns={})
    np.testing.assert_array_equal(rows, arrays["inputs"].astype(np.float32))


def test_inputs_of_fixed_shapes_have_a_fast_reader():
    for shape in ([None, 2, 3], [4, 2]):
        assert JsonRows.of("float32", shape) is not None
    for shape in (None, [None], [None, None, 2]):
        assert JsonRows.of("float32", shape) is None
    assert JsonRows.of("float64", [None, 2]) is None
