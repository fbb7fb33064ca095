"""Supplied uncertainties: read by name beside the samples, refused by row."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from dataset_files import (
    COLUMN_FORMATS,
    check_refused,
    output_columns,
    read_supplied,
    refusal,
    write_logits,
    write_parquet,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from service.child.reading.checks import MAX_SUPPLIED
from service.errors import InvalidDataset, TooLarge

PLAIN_NAMES = st.from_regex(r"[A-Za-z0-9_]{1,50}", fullmatch=True)
# Half a step above the largest float32, (2 - 2^-23) 2^127: the first that rounds to infinity.
FIRST_OVERFLOW = (2 - 2.0**-24) * 2.0**127
LARGEST = float(np.nextafter(FIRST_OVERFLOW, 0))


def write(path: Path, file_format: str, supplied: dict[str, np.ndarray]) -> Path:
    n_samples = len(next(iter(supplied.values())))
    columns = {f"uncertainty_{name}": values for name, values in supplied.items()}
    labels = np.arange(n_samples) % 2
    return write_logits(path, file_format, np.ones((n_samples, 2)), labels, **columns)


@settings(deadline=None, max_examples=40)
@given(
    data=st.data(),
    names=st.lists(PLAIN_NAMES, min_size=1, max_size=4, unique=True),
    batch_size=st.integers(1, 40),
)
@pytest.mark.parametrize("file_format", COLUMN_FORMATS)
def test_columns_come_back_by_name(tmp_path_factory, data, file_format, names, batch_size):
    n_samples = data.draw(st.integers(1, 30))
    numbers = st.floats(-LARGEST, LARGEST) | st.just(LARGEST)
    column = st.lists(numbers, min_size=n_samples, max_size=n_samples).map(np.array)
    supplied = {name: data.draw(column) for name in names}
    path = write(tmp_path_factory.mktemp("supplied") / "set.npz", file_format, supplied)
    found = read_supplied(path, batch_size=batch_size)
    assert found.keys() == supplied.keys()
    for name, values in supplied.items():
        np.testing.assert_array_equal(found[name], values)
        assert found[name].dtype == np.float64


@pytest.mark.parametrize(
    ("file_format", "dtype"),
    [("npz", "<f2"), ("npz", "<f4"), ("npz", ">f4"), ("npz", ">f8")]
    + [("parquet", f"f{width}") for width in (2, 4, 8)],
)
def test_columns_of_any_float_become_float64(path, file_format, dtype):
    values = np.linspace(0, 4, 9)
    found = read_supplied(write(path, file_format, {"human": values.astype(dtype)}))["human"]
    np.testing.assert_array_equal(found, values)
    assert found.dtype == np.float64
    assert found.dtype.isnative


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, FIRST_OVERFLOW, -1e300])
@pytest.mark.parametrize("file_format", COLUMN_FORMATS)
def test_a_value_that_float32_cannot_hold_is_refused_by_row(path, file_format, value):
    values = np.zeros(20)
    values[[17, 18]] = value
    write(path, file_format, {"good": np.ones(20), "human": values})
    message = f"expected a number that is finite in float32, got {value}"
    if file_format == "csv" and np.isnan(value):
        message = "expected a number, got an empty cell or NaN"
    check_refused(path, ".uncertainty_human[17]", message)


@pytest.mark.parametrize(
    "name", ["", "a b", "a-b", "a.b", "größe", "²", "a\u200bb", "x" * 51, "human\n", "a/b"]
)
@pytest.mark.parametrize("file_format", COLUMN_FORMATS)
def test_the_name_of_a_supplied_column_is_plain(path, file_format, name):
    error = refusal(write(path, file_format, {name: np.ones(3)}))
    assert type(error) is InvalidDataset
    assert error.violations[0].location == "calibration"
    assert error.message.isprintable()
    assert error.message.isascii()
    assert len(error.message) < 250


@pytest.mark.parametrize("file_format", COLUMN_FORMATS)
def test_columns_are_counted(path, file_format):
    supplied = {f"u{i}": np.ones(3) for i in range(MAX_SUPPLIED)}
    assert len(read_supplied(write(path, file_format, supplied))) == MAX_SUPPLIED
    error = refusal(write(path, file_format, supplied | {"one_more": np.ones(3)}))
    assert type(error) is TooLarge
    assert f"at most {MAX_SUPPLIED} columns" in error.message


@pytest.mark.parametrize(
    ("values", "place", "message"),
    [
        (np.arange(6), ".uncertainty_human", "cast the column to float32"),
        (np.array(["low"] * 6), ".uncertainty_human", "got string"),
        (pa.array([0.5] * 4 + [None] * 2), ".uncertainty_human[4]", "empty cell"),
    ],
)
def test_a_column_of_parquet_holds_floats_alone(path, values, place, message):
    table = output_columns(np.ones((6, 2)), np.zeros(6, int)) | {"uncertainty_human": values}
    check_refused(write_parquet(path, table), place, message)


@pytest.mark.parametrize(
    ("cell", "message"), [("", "empty cell"), ("low", "got 'low'"), ("NA", "or NaN")]
)
def test_a_cell_of_csv_holds_a_number(path, cell, message):
    path.write_text(f"label,uncertainty_human,logit_0,logit_1\n0,0.5,1,2\n1,{cell},1,2\n")
    check_refused(path, ".uncertainty_human[1]", message)
