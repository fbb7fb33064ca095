"""Which rows are unlike those that an input's range was collected from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from howsure.statistics.input_ranges import InputRange, InputRanges, row_extents

SHAPES = arrays.array_shapes(min_dims=2, max_dims=4, min_side=2, max_side=5)
FLOATS = arrays.arrays(np.float32, SHAPES, elements=st.floats(-100, 100, width=32))


def range_of(*batches) -> InputRange:
    ranges = InputRanges(["x"])
    for batch in batches:
        ranges.add({"x": batch})
    return InputRange(**ranges.as_dict()["x"])


def unlike(known: InputRange, rows) -> list[bool]:
    least, most = row_extents(rows)
    return np.asarray(known.is_unlike(least.astype(np.float64), most.astype(np.float64))).tolist()


PIXELS = np.random.default_rng(0).uniform(0, 1, (50, 3, 4, 4))


@given(FLOATS.filter(lambda rows: rows.min() < rows.max()))
def test_no_row_is_unlike_its_own_set(rows) -> None:
    assert not any(unlike(range_of(rows), rows))


@given(st.integers(1, 49))
def test_batches_do_not_matter(at) -> None:
    assert range_of(PIXELS[:at], PIXELS[at:]) == range_of(PIXELS)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_another_scale_is_unlike_and_half_or_twice_is_not(dtype) -> None:
    known = range_of(PIXELS.astype(dtype))
    for factor, expected in {255: True, 1 / 255: True, 0.5: False, 1.9: False}.items():
        assert unlike(known, (PIXELS * factor).astype(dtype)) == [expected] * 50, factor
    assert unlike(known, (PIXELS - 1.5).astype(dtype)) == [True] * 50


@pytest.mark.parametrize("sign", [-1, 1])
def test_one_number_far_outside_is_enough(sign) -> None:
    rows = PIXELS.copy()
    rows[7, 1, 2, 3] = sign * 2.5
    assert np.flatnonzero(unlike(range_of(PIXELS), rows)).tolist() == [7]


def test_rows_with_one_number_everywhere_are_unlike_those_without() -> None:
    rows = np.full((1, 3, 4, 4), 0.5)
    assert unlike(range_of(PIXELS), rows) == [True]
    assert unlike(range_of(PIXELS, rows), rows) == [False]


def test_numbers_beyond_float32_are_finite() -> None:
    huge = np.array([[-1e300, 1e300], [0.0, 1.0]])
    known = range_of(huge)
    assert np.isfinite(known.bounds).all()
    assert unlike(known, huge) == [False, False]


def test_constant_inputs_and_single_numbers_have_no_range() -> None:
    ranges = InputRanges(["constant", "single", "missing"])
    ranges.add({"constant": np.ones((4, 3)), "single": np.arange(4.0)[:, None], "other": PIXELS})
    assert ranges.as_dict() == {}
