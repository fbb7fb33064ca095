"""Parquet of outputs: its types, and footers that claim what is not so."""

import struct

import numpy as np
import pyarrow as pa
import pytest
from dataset_files import (
    check_refused,
    output_columns,
    read_all,
    refusal,
    write_parquet,
)

from service.child.reading.parquet import MAX_FOOTER_BYTES
from service.errors import InvalidDataset, TooLarge
from service.runner.messages.limits import DatasetLimits

LABELS = np.arange(40) % 3
LOGITS = np.linspace(-1, 1, 120, dtype=np.float32).reshape(40, 3)
TABLE = output_columns(LOGITS, LABELS)
PARQUET_CASES = {
    "broken label": (TABLE | {"label": LABELS + 0.5}, ".label[0]", "an integer, got '"),
    "date of a label": (TABLE | {"label": LABELS.astype("M8[s]")}, ".label", "cast the column to"),
    "integer logits": (TABLE | {"logit_1": LABELS}, ".logit_1", "cast the column to float32"),
    "list of logits": (TABLE | {"logit_1": [[1.0]] * 40}, ".logit_1", "expected floats"),
    "missing label": (
        {name: values for name, values in TABLE.items() if name != "label"},
        ".label",
        "a column `label`",
    ),
    "null label": (
        TABLE | {"label": pa.array([*LABELS[:-1].tolist(), None])},
        ".label[39]",
        "empty cell",
    ),
    "nan": (TABLE | {"logit_2": np.append(LOGITS[:-1, 2], np.nan)}, ".logit_2[39]", "got nan"),
    "other columns": (TABLE | {"path": LABELS / 2}, "", "got also `path`"),
}


@pytest.mark.parametrize("case", PARQUET_CASES)
def test_a_broken_rule_of_parquet_is_named_with_its_place(path, case):
    table, location, message = PARQUET_CASES[case]
    check_refused(write_parquet(path, table, row_group_size=16), location, message)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_parquet_keeps_the_precision_of_its_output_columns(path, dtype):
    table = output_columns(LOGITS.astype(dtype), LABELS.astype(np.int8))
    found, labels = read_all(write_parquet(path, table))
    np.testing.assert_array_equal(found["logits"], LOGITS.astype(dtype))
    assert (found["logits"].dtype, labels.dtype) == (dtype, np.int64)


def test_a_parquet_of_too_many_columns_is_refused(path):
    table = output_columns(np.zeros((1, 1200), np.float32), np.zeros(1, int))
    path = write_parquet(path, table)
    error = refusal(path, limits=DatasetLimits(max_classes=100))
    assert type(error) is TooLarge
    assert "columns, got 1201" in error.message


def test_rows_that_cost_no_bytes_are_counted_before_they_are_decoded(path):
    n_samples = 2_000_000
    zeros = pa.array(np.zeros(n_samples, np.float32))
    table = {"label": zeros.cast(pa.int32()), "logit_0": zeros, "logit_1": zeros}
    path = write_parquet(path, table)
    assert path.stat().st_size < 100_000
    error = refusal(path, limits=DatasetLimits(max_samples=99_999))
    assert type(error) is TooLarge
    assert "got 2000000" in error.message
    error = refusal(path, limits=DatasetLimits(max_inflated_bytes=1000))
    assert type(error) is TooLarge
    assert "bytes" in error.message


@pytest.mark.parametrize("claim", [MAX_FOOTER_BYTES + 1, 2**32 - 1, 10_000, 0])
def test_a_footer_of_another_length_is_refused(path, claim):
    path = write_parquet(path, TABLE)
    path.write_bytes(path.read_bytes()[:-8] + struct.pack("<L", claim) + b"PAR1")
    assert type(refusal(path)) is (TooLarge if claim > MAX_FOOTER_BYTES else InvalidDataset)
