"""Supplied uncertainties: read by name beside the samples, refused by row."""

from pathlib import Path

import numpy as np
import pytest
from dataset_files import COLUMN_FORMATS, check_refused, read_supplied, refusal, write_logits

from service.child.reading.checks import MAX_SUPPLIED
from service.errors import InvalidDataset, TooLarge

# Half a step above the largest float32, (2 - 2^-23) 2^127: the first that rounds to infinity.
FIRST_OVERFLOW = (2 - 2.0**-24) * 2.0**127
LARGEST = float(np.nextafter(FIRST_OVERFLOW, 0))


def write(path: Path, file_format: str, supplied: dict[str, np.ndarray]) -> Path:
    n_samples = len(next(iter(supplied.values())))
    columns = {f"uncertainty_{name}": values for name, values in supplied.items()}
    labels = np.arange(n_samples) % 2
    return write_logits(path, file_format, np.ones((n_samples, 2)), labels, **columns)


@pytest.mark.parametrize("batch_size", [1, 7, 40])
@pytest.mark.parametrize("file_format", COLUMN_FORMATS)
def test_columns_come_back_by_name(path, file_format, batch_size):
    numbers = [LARGEST, -LARGEST, 0.1, -0.0, 5e-324, 1 / 3]
    supplied = {name: np.roll(numbers, k) for k, name in enumerate(("a", "_", "9", "X" * 50))}
    values = read_supplied(write(path, file_format, supplied), batch_size=batch_size)
    assert values.keys() == supplied.keys()
    for name, column in supplied.items():
        np.testing.assert_array_equal(values[name], column)
        assert values[name].dtype == np.float64


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, FIRST_OVERFLOW, -1e300])
@pytest.mark.parametrize("file_format", COLUMN_FORMATS)
def test_a_value_that_float32_cannot_hold_is_refused_by_row(path, file_format, value):
    values = np.zeros(20)
    values[[17, 18]] = value
    write(path, file_format, {"good": np.ones(20), "human": values})
    figure = "NaN" if file_format == "csv" and np.isnan(value) else f"float32, got {value}"
    check_refused(path, ".uncertainty_human[17]", figure)


OTHER_NAMES = ["", "a b", "a-b", "a.b", "größe", "²", "a\u200bb", "x" * 51, "human\n", "a/b"]


@pytest.mark.parametrize("name", OTHER_NAMES)
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
    assert f"{MAX_SUPPLIED}" in error.message
