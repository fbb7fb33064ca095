"""Which rows are unlike those that an input's range was collected from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from howsure.preprocessing import PRESETS
from howsure.statistics.compared_inputs import ComparedInputs, NamedColumns
from howsure.statistics.input_ranges import (
    ColumnRanges,
    InputRange,
    InputRanges,
    finite_row_extents,
    row_extents,
)
from service.child.pictures.values import model_values

SHAPES = arrays.array_shapes(min_dims=2, max_dims=4, min_side=2, max_side=5)
FLOATS = arrays.arrays(np.float32, SHAPES, elements=st.floats(-100, 100, width=32))


def ranges_of(*batches) -> InputRanges:
    ranges = InputRanges()
    for batch in batches:
        ranges.add({"x": batch})
    return ranges


def range_of(*batches) -> InputRange:
    return ranges_of(*batches).found["x"]


def unlike(known: InputRange, rows) -> list[bool]:
    return known.is_unlike(*np.array(row_extents(rows), np.float64)).tolist()


PIXELS = np.random.default_rng(0).uniform(0, 1, (50, 3, 4, 4))


@given(FLOATS.filter(lambda rows: rows.min() < rows.max()), st.integers(1, 49))
def test_no_row_is_unlike_its_own_set_and_batches_do_not_matter(rows, at) -> None:
    assert not any(unlike(range_of(rows), rows))
    assert range_of(PIXELS[:at], PIXELS[at:]) == range_of(PIXELS)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_another_scale_is_unlike_and_half_of_it_is_not(dtype) -> None:
    known = range_of(PIXELS.astype(dtype))
    for factor, expected in {255: True, 1 / 255: True, 0.5: False, 1.3: False}.items():
        assert unlike(known, (PIXELS * factor).astype(dtype)) == [expected] * 50, factor
    for shifted in (PIXELS - 1, PIXELS - 0.5, PIXELS * 2 - 1, (PIXELS - 0.45) / 0.22):
        assert unlike(known, shifted.astype(dtype)) == [True] * 50


def test_one_number_far_outside_or_everywhere_is_enough() -> None:
    for number in (-2.5, 2.5):
        rows = PIXELS.copy()
        rows[7, 1, 2, 3] = number
        assert np.flatnonzero(unlike(range_of(PIXELS), rows)).tolist() == [7]
    rows = np.full((1, 3, 4, 4), 0.5)
    assert unlike(range_of(PIXELS), rows) == [True]
    assert unlike(range_of(PIXELS, rows), rows) == [False]


def test_constant_inputs_and_single_numbers_have_no_range_nor_wide_arrays_columns() -> None:
    for rows in (np.ones((4, 3)), np.arange(4.0)[:, None]):
        assert ranges_of(rows).found == {}
    for rows in (np.ones((2, 257)), PIXELS):
        assert ranges_of(rows).columns == {}


def test_numbers_beyond_float32_have_a_range() -> None:
    huge = np.array([[-1e300, 1e300], [0.0, 1.0]])
    assert np.isfinite(range_of(huge).bounds).all()
    assert unlike(range_of(huge), huge) == [False, False]


def test_rows_of_a_further_set_are_counted_by_the_worst_input() -> None:
    known = {"x": range_of(PIXELS), "y": InputRange(-5.0, 5.0, 1.0)}
    compared = ComparedInputs(known, {})
    assert compared.worst is None
    alike, far = np.full((30, 2), [-9.0, 1.0]), np.full((20, 2), [-50.0, 1.0])
    compared.add({"x": PIXELS[:30], "y": alike})
    assert compared.worst is None
    compared.add({"x": PIXELS[30:] * 255, "y": far})
    compared.add({"x": PIXELS[:5] * 255, "y": alike[:5], "z": PIXELS[:5]})
    found = compared.worst
    assert (found.rows, found.samples) == (25, 55)
    assert (found.known_least, found.known_most) == (known["x"].least, known["x"].most)
    assert found.most == pytest.approx(max(PIXELS[30:].max(), PIXELS[:5].max()) * 255)


@pytest.mark.parametrize("preset", [name for name in PRESETS if name != "none"])
def test_the_range_of_pictures_is_that_of_what_the_model_gets(preset) -> None:
    asked = PRESETS[preset]
    pixels = np.random.default_rng(1).integers(0, 256, (40, 8, 8, 3)).astype(np.uint8)
    pixels[0, 0, 0], pixels[0, 0, 1] = 0, 255
    given, known = model_values(pixels, asked), asked.range_of_values(range_of(pixels))
    assert (known.least, known.most) == pytest.approx((given.min(), given.max()), rel=1e-6)
    assert known.least_spread == pytest.approx(range_of(given).least_spread, rel=0.15)
    assert not any(unlike(known, given))
    assert all(unlike(known, pixels))
    assert all(unlike(known, given / 255))


TABLE = np.random.default_rng(2).uniform([0, 100, -1], [1, 5000, -0.5], (80, 3))


def columns_of(rows) -> ColumnRanges:
    return ranges_of(*np.array_split(rows, 2)).columns["x"]


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_a_column_in_another_unit_is_outside(dtype) -> None:
    """Beyond its own width on either side."""
    rows, own = (TABLE * 100).astype(dtype), np.eye(3, dtype=bool)
    known = columns_of(rows)
    assert not known.outside(rows).any()
    least, most = np.array(known.least), np.array(known.most)
    for share, is_outside in ((0.9, False), (1.1, True)):
        width = share * (most - least)
        for end in (least - width, most + width):
            moved = np.where(own, end, rows[0].astype(np.float64))
            np.testing.assert_array_equal(known.outside(moved), own & is_outside)


def test_constant_columns_and_huge_numbers_mark_nothing_of_their_own() -> None:
    rows = np.array([[7.0, -1e300, 1e-300], [7.0, 1e300, 2e-300]])
    known = columns_of(rows)
    assert not known.outside(rows * [[1000.0, 1.0, 1.0]]).any()
    assert not known.outside(rows).any()
    assert known.outside(rows[:, :2]).all(), "another number of columns"


def test_the_worst_column_is_named() -> None:
    names = ("share", "income", "depth")
    compared = ComparedInputs({"x": range_of(TABLE)}, {"x": NamedColumns(names, columns_of(TABLE))})
    compared.add({"x": TABLE[:50]})
    assert compared.worst is None
    compared.add({"x": TABLE[50:] * [[100, 1, 1]]})
    found = compared.worst
    assert found.column == "share"
    assert (found.rows, found.samples) == (np.count_nonzero(TABLE[50:, 0] > 0.02), 80)
    assert (found.known_least, found.known_most) == (TABLE[:, 0].min(), TABLE[:, 0].max())


@pytest.mark.parametrize(
    ("table", "most"), [(load_breast_cancer, 0.005), (load_diabetes, 0.001), (load_wine, 0.001)]
)
def test_new_rows_of_a_table_are_rarely_marked(table, most) -> None:
    """The mean over 20 splits, with 200 calibration samples or 120."""
    rows, rng = table().data, np.random.default_rng(0)
    n = min(200, 120 * len(rows) // 178)
    orders = [rng.permutation(len(rows)) for _ in range(20)]
    splits = [(rows[order[:n]], rows[order[n:]]) for order in orders]
    assert np.mean([columns_of(one).outside(new).any(axis=1).mean() for one, new in splits]) < most


GAP = np.nan
WITH_GAPS = np.array([[1.0, GAP, 30.0, GAP], [2.0, 20.0, GAP, GAP], [GAP, 10.0, 10.0, GAP]])


@pytest.mark.parametrize(("dtype", "at"), [(np.float32, ()), (np.float64, (1, 2))])
def test_missing_values_are_left_out_of_all_numbers(dtype, at) -> None:
    ranges = ranges_of(*np.split(WITH_GAPS.astype(dtype), at))
    columns = ranges.columns["x"]
    assert (columns.least, columns.most) == ((1, 10, 10, 0), (2, 20, 30, 0))
    np.testing.assert_allclose(columns.missing, [1 / 3, 1 / 3, 1 / 3, 1])
    assert ranges.found["x"] == InputRange(1.0, 30.0, 0.0)
    middles = ranges.middles["x"]
    expected = np.nanquantile(WITH_GAPS[:, :3], [0.1, 0.9], axis=0)
    np.testing.assert_allclose([middles.low, middles.high], np.pad(expected, ((0, 0), (0, 1))))


def test_the_extent_of_a_row_is_that_of_its_values() -> None:
    least, most = row_extents(WITH_GAPS)
    assert (least.tolist(), most.tolist()) == ([1, 2, 10], [30, 20, 10])
    rows = np.array([[1.0, 3.0], [GAP, GAP]])
    assert unlike(InputRange(0.0, 9.0, 0.0), rows) == [False, True]
    assert range_of(rows) == range_of(rows[:1]) == InputRange(1.0, 3.0, 2.0)
    assert ranges_of(rows[1:]).found == {}
    assert columns_of(np.ones((3, 2))).missing == ()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_extents_prove_that_all_numbers_are_finite(bad) -> None:
    rows = np.random.default_rng(0).normal(size=(5, 2, 40)).astype(np.float32)
    found = finite_row_extents(rows)
    assert found is not None
    np.testing.assert_array_equal(found, row_extents(rows), strict=True)
    for place in range(0, rows.size, 7):
        broken = rows.copy()
        broken.flat[place] = bad
        assert finite_row_extents(broken) is None
    rows[1, 1, 1] = np.finfo(np.float32).max
    assert finite_row_extents(rows) is not None


def test_a_missing_value_is_outside_where_the_set_has_none() -> None:
    rows = np.column_stack([WITH_GAPS[:, :1], [1.0, 2.0, 3.0]])
    known = columns_of(rows)
    assert known.outside(np.full((1, 2), GAP)).tolist() == [[False, True]]
    assert not known.outside(rows).any()


@pytest.mark.parametrize(("before", "now", "is_found"), [
    (0.0, 0.01, True), (0.1, 0.5, False), (0.1, 0.7, True), (0.3, 0.7, False), (0.3, 0.9, True),
    (0.5, 0.8, False), (0.5, 1.0, True), (1.0, 1.0, False),
])  # fmt: skip
def test_a_column_that_lost_its_values_is_named(before, now, is_found) -> None:
    known, rows = (np.random.default_rng(3).normal(size=(1000, 2)) for _ in range(2))
    known[: int(before * 1000), 1] = GAP
    rows[: int(now * 1000), 1] = GAP
    compared = ComparedInputs({}, {"x": NamedColumns(("age", "income"), columns_of(known))})
    for batch in np.split(rows, 4):
        compared.add({"x": batch})
    worst = compared.worst
    figures = worst and (worst.column, worst.rows, worst.known_missing)
    assert figures == (("income", 1000 * now, before) if is_found else None)
