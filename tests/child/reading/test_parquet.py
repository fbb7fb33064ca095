"""Parquet: what is refused with the cell at fault, and footers that claim what is not so."""

import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from dataset_files import (
    check_mutations,
    check_refused,
    output_columns,
    read_all,
    refusal,
    write_parquet,
)

from service.child.reading.parquet import MAX_FOOTER_BYTES
from service.errors import InvalidDataset, TooLarge
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import Reading

N = 30
LABELS = np.arange(N) % 3
LOGITS = np.linspace(-1, 1, 3 * N, dtype=np.float32).reshape(N, 3)
OUTPUTS = output_columns(LOGITS, LABELS)
AGE = np.arange(N)
FEATURES = {"age": AGE, "label": LABELS, "income": AGE / 7}
IDS = np.random.default_rng(0).integers(0, 30_000, (N, 8)).tolist()


def with_null(values: np.ndarray, row: int) -> pa.Array:
    return pa.array(values, mask=np.arange(N) == row)


def with_list(entry: list | None) -> dict[str, object]:
    """Return tokens and labels, with another list in row 17."""
    rows = [*IDS[:17], entry, *IDS[18:]]
    return {"input_ids": pa.array(rows, pa.list_(pa.int64())), "label": LABELS}


def with_uncertainty(values: object) -> dict[str, object]:
    return OUTPUTS | {"uncertainty_a": values}


BEYOND_64_BITS = pa.array([[0, 1]] * 29 + [[0, 2**63]], pa.list_(pa.uint64()))
SPARK = {"type": pa.int8(), "size": pa.int32(), "indices": pa.list_(pa.int32())}
SPARK |= {"values": pa.list_(pa.float64())}
SPARK_VECTORS = pa.array([{"type": 1, "values": [1.0]}] * N, pa.struct([*SPARK.items()]))
# The columns, where they are refused, and what the message names: the figure, the type, the fix.
CASES = {
    # Outputs.
    "broken label": (OUTPUTS | {"label": LABELS + 0.5}, ".label[0]", "'0.5'"),
    "integer logits": (OUTPUTS | {"logit_1": LABELS}, ".logit_1", "float32"),
    "null label": (OUTPUTS | {"label": with_null(LABELS, 29)}, ".label[29]", "empty cell"),
    "integer uncertainties": (with_uncertainty(LABELS), ".uncertainty_a", "float32"),
    "no uncertainty": (with_uncertainty(with_null(AGE / 9, 4)), ".uncertainty_a[4]", "empty cell"),
    # Inputs.
    "nothing but the label": ({"label": LABELS}, "", "`label`"),
    "dates of labels": (FEATURES | {"label": LABELS.astype("M8[s]")}, ".label", "int64"),
    "dates": (FEATURES | {"day": pa.array([0] * N, pa.date32())}, ".day", "`day`"),
    "a struct": (FEATURES | {"box": [{"x": 1}] * N}, ".box", "struct<x: int64> in `box`"),
    "a vector of Spark": (FEATURES | {"v": SPARK_VECTORS}, ".v", "vector_to_array"),
    "ragged": (with_list([1] * 9), ".input_ids[17]", "8 values as in the rows before, got 9; pad"),
    "null list": (with_list(None), ".input_ids[17]", "list"),
    "null in a list": (with_list([1] * 7 + [None]), ".input_ids[17]", "empty cell"),
    "no sum in a list": (
        {"label": LABELS, "probabilities": [[0.5, 0.25, 0.25]] * 29 + [[0.5, 0.5, 0.5]]},
        ".probabilities[29]",
        "got 1.5",
    ),
    "one class in lists": ({"label": LABELS, "logits": [[1.0]] * N}, ".logits", "at least 2"),
    "64 bits": ({"x": BEYOND_64_BITS, "label": LABELS}, ".x[29]", "got 9223372036854775808"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_broken_rule_is_named_with_its_place(path, case):
    columns, location, named = CASES[case]
    check_refused(write_parquet(path, columns, row_group_size=7), location, named)


COLUMNS = [({"x": ["years"]}, "missing: `years`; got also `age`, `income`, `city`")]
COLUMNS += [({"x": ["age", "incme"]}, "`income`?"), ({"label": ["lable"]}, "`label`?")]
COLUMNS += [({"x": []}, "`x`"), ({"label": ["y"]}, "got `y`; there are `age`, `label`, `income`")]
COLUMNS += [({"label": ["age", "income"]}, "got `age`, `income`")]
COLUMNS += [({"x": ["city", "age"]}, "text in `city`")]
COLUMNS += [({"x": ["ids", "age"]}, "one column of lists, got `ids`, `age`")]


@pytest.mark.parametrize(("columns", "named"), COLUMNS)
def test_columns_that_cannot_be_read_as_the_caller_says_are_refused(path, columns, named):
    path = write_parquet(path, FEATURES | {"city": ["Oslo"] * N, "ids": IDS})
    error = refusal(path, reading=Reading(columns=columns))
    assert type(error) is InvalidDataset
    assert named in error.message


ZEROS = pa.array(np.zeros(2_000_000, np.float32))
NO_BYTES = {"label": ZEROS.cast(pa.int32()), "logit_0": ZEROS, "logit_1": ZEROS}
WIDE = output_columns(np.zeros((1, 1200), np.float32), np.zeros(1, int))


TOO_LARGE = [
    (WIDE, DatasetLimits(max_classes=100), "got 1201"),
    (NO_BYTES, DatasetLimits(max_samples=99_999), "got 2000000"),
    (NO_BYTES, DatasetLimits(max_inflated_bytes=1000), "1000 bytes"),
]


@pytest.mark.parametrize(("columns", "limits", "figure"), TOO_LARGE)
def test_columns_and_rows_are_counted_before_they_are_decoded(path, columns, limits, figure):
    assert write_parquet(path, columns).stat().st_size < 400_000
    error = refusal(path, limits=limits)
    assert type(error) is TooLarge
    assert figure in error.message


@pytest.mark.parametrize("claim", [MAX_FOOTER_BYTES + 1, 2**32 - 1, 10_000, 0])
def test_a_footer_of_another_length_is_refused(path, claim):
    path = write_parquet(path, OUTPUTS)
    path.write_bytes(path.read_bytes()[:-8] + struct.pack("<L", claim) + b"PAR1")
    assert type(refusal(path)) is (TooLarge if claim > MAX_FOOTER_BYTES else InvalidDataset)


# Much for few bytes, and pages that are not what the footer says.

N_ROWS = 1000


def lists(n_rows: int, length: int) -> pa.Array:
    offsets = pa.array(length * np.arange(n_rows + 1), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(np.zeros(n_rows * length, bool)))


def test_rows_of_lists_that_cost_no_bytes_are_counted(path):
    n_samples = 200_000
    columns = {"ids": lists(n_samples, 64), "label": np.zeros(n_samples, np.int8)}
    assert write_parquet(path, columns, compression="zstd").stat().st_size < 50_000
    for limits in ({"max_samples": n_samples - 1}, {"max_inflated_bytes": n_samples * 64 * 8 - 1}):
        assert type(refusal(path, limits=DatasetLimits(**limits))) is TooLarge


def varint(value: int) -> bytes:
    """Return a number as Thrift's compact protocol writes it in two bytes."""
    low, high = divmod(2 * value, 128)[::-1]
    assert high < 128
    return bytes([low | 0x80, high])


@pytest.mark.parametrize("claimed", [N_ROWS, N_ROWS - 1, N_ROWS + 1, 8191])
def test_pages_have_as_many_values_as_the_footer_says(path, claimed):
    table = {"x": np.arange(N_ROWS), "label": np.arange(N_ROWS) % 2}
    write_parquet(path, table, compression="none", use_dictionary=False)
    header = pa_parquet.read_metadata(path).row_group(0).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    at = data.index(varint(N_ROWS), header, header + 30)
    data[at : at + 2] = varint(claimed)
    path.write_bytes(data)
    if claimed == N_ROWS:
        assert read_all(path)[0]["inputs"].ravel().tolist() == list(range(N_ROWS))
    else:
        assert type(refusal(path)) is InvalidDataset


OF_LISTS = {"ids": lists(40, 4), "label": ["cat", "dog"] * 20, "uncertainty_own": np.ones(40)}


@pytest.mark.parametrize("columns", [OF_LISTS, OUTPUTS], ids=["inputs", "outputs"])
def test_a_changed_table_is_read_or_refused(path, columns):
    write_parquet(path, columns, row_group_size=16)
    check_mutations(path, step=79, times=150)
