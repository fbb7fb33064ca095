"""Tables of inputs: features side by side, lists as arrays, columns as the caller names them."""

import numpy as np
import pyarrow as pa
import pytest
from dataset_files import (
    check_refused,
    info_of,
    read_all,
    refusal,
    write_columns,
    write_parquet,
    write_text,
)

from service.errors import InvalidDataset
from service.runner.messages.dataset import ArrayInfo
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import Reading

N = 30
RNG = np.random.default_rng(0)
LABELS = np.arange(N) % 3
AGE = RNG.integers(0, 90, N)
INCOME = RNG.normal(size=N)
FEATURES = {"age": AGE, "label": LABELS, "income": INCOME}
IDS = RNG.integers(0, 30_000, (N, 8))
MASK = RNG.integers(0, 2, (N, 8))
TOKENS = {
    "input_ids": pa.array(IDS.tolist(), pa.list_(pa.int32())),
    "attention_mask": pa.array(MASK.tolist(), pa.list_(pa.int8(), 8)),
    "label": LABELS,
}


@pytest.mark.parametrize("batch_size", [1, 7, 100])
@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_features_are_side_by_side_in_the_order_of_the_file(path, file_format, batch_size):
    path = write_columns(path, file_format, FEATURES | {"uncertainty_own": INCOME})
    found, labels = read_all(path, batch_size=batch_size)
    np.testing.assert_array_equal(found["inputs"], np.stack([AGE, INCOME], axis=1))
    np.testing.assert_array_equal(labels, LABELS)
    info = info_of(path)
    assert (info.kind, info.format, info.n_classes) == ("inputs", file_format, None)
    assert info.supplied == ("own",)
    assert info.arrays == {"inputs": ArrayInfo("float64", (N, 2))}
    assert info.notes == ("Columns of `inputs`, in the order of the file: 2, `age`, `income`.",)
    error = refusal(path, limits=DatasetLimits(max_classes=2))
    assert error.violations[0].location == "calibration.label[2]"


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (["float32", "int16", "bool"], "float32"),
        (["float32", "int32"], "float64"),
        (["float16", "float16"], "float16"),
        (["int8", "int64"], "int64"),
        (["uint64", "int64"], "float64"),
    ],
)
def test_features_get_the_type_that_holds_all_of_them(path, dtypes, expected):
    columns = {f"x{k}": (AGE % 2).astype(dtype) for k, dtype in enumerate(dtypes)}
    found, _ = read_all(write_parquet(path, columns | {"label": LABELS}))
    assert found["inputs"].dtype == expected
    np.testing.assert_array_equal(found["inputs"], np.stack([AGE % 2] * len(dtypes), axis=1))


@pytest.mark.parametrize("batch_size", [1, 7, 100])
def test_lists_are_arrays_of_64_bit_integers_by_name(path, batch_size):
    path = write_parquet(path, TOKENS, row_group_size=11)
    found, labels = read_all(path, batch_size=batch_size)
    assert list(found) == ["input_ids", "attention_mask"]
    np.testing.assert_array_equal(found["input_ids"], IDS)
    np.testing.assert_array_equal(found["attention_mask"], MASK)
    np.testing.assert_array_equal(labels, LABELS)
    assert {array.dtype for array in found.values()} == {np.dtype("int64")}


def test_columns_beside_lists_are_not_read_and_named(path):
    more = {f"c{k}": AGE for k in range(4)} | {"text": ["x"] * N, "tags": [["a"]] * N}
    path = write_parquet(path, {"idx": AGE} | TOKENS | more)
    info = info_of(path)
    assert list(info.arrays) == ["input_ids", "attention_mask"]
    (note,) = info.notes
    assert "only `input_ids`, `attention_mask` are inputs" in note
    assert note.endswith("not read: `idx`, `c0`, `c1`, `c2`, `c3`, ….")
    assert info_of(write_parquet(path, TOKENS)).notes == ()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("kind", ["lists", "large lists", "lists of one length"])
def test_nested_lists_keep_their_shape_and_precision(path, dtype, kind):
    series = RNG.normal(size=(N, 4, 2)).astype(dtype)
    inner = pa.list_(pa.from_numpy_dtype(dtype))
    arrow = {
        "lists": pa.list_(inner),
        "large lists": pa.large_list(inner),
        "lists of one length": pa.list_(pa.list_(pa.from_numpy_dtype(dtype), 2), 4),
    }[kind]
    columns = {"series": pa.array([[list(r) for r in s] for s in series], arrow), "label": LABELS}
    found, _ = read_all(write_parquet(path, columns, row_group_size=11))
    np.testing.assert_array_equal(found["series"], series)
    assert found["series"].dtype == dtype


def test_columns_are_read_as_the_caller_names_them(path):
    columns = TOKENS | {"income": INCOME, "age": AGE, "city": ["x"] * N, "target": 2 - LABELS}
    path = write_parquet(path, columns)
    asked = {"ids": ["input_ids"], "plain": ["age", "income"], "one": ["age"], "label": ["target"]}
    found, labels = read_all(path, reading=Reading(columns=asked))
    assert list(found) == ["ids", "plain", "one"]
    np.testing.assert_array_equal(found["ids"], IDS)
    np.testing.assert_array_equal(found["plain"], np.stack([AGE, INCOME], axis=1))
    np.testing.assert_array_equal(found["one"], AGE[:, None])
    np.testing.assert_array_equal(labels, 2 - LABELS)


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_label_of_another_name_is_no_feature(path, file_format):
    path = write_columns(path, file_format, FEATURES | {"target": 2 - LABELS})
    found, labels = read_all(path, reading=Reading(columns={"label": ["target"]}))
    # Nor is the column `label`, which may be the same thing in other words.
    np.testing.assert_array_equal(found["inputs"], np.stack([AGE, INCOME], axis=1))
    np.testing.assert_array_equal(labels, 2 - LABELS)


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_inputs_without_labels(path, file_format):
    path = write_columns(path, file_format, {"age": AGE, "income": INCOME})
    found, labels = read_all(path, labels_required=False)
    np.testing.assert_array_equal(found["inputs"], np.stack([AGE, INCOME], axis=1))
    assert labels.tolist() == [0] * N
    assert not info_of(path, labels_required=False).labelled
    error = refusal(path)
    assert error.violations[0].location == "calibration.label"
    assert "got `age`, `income`" in error.message
    assert 'config.columns: {"label": ["its name"]}' in error.message


def nulled(values: np.ndarray, row: int) -> pa.Array:
    mask = np.arange(len(values)) == row
    return pa.array(values, mask=mask)


def replaced(column: str, row: int, value: object) -> dict[str, object]:
    """Return the columns of tokens with another list in one row."""
    values = TOKENS[column].to_pylist()
    values[row] = value
    return TOKENS | {column: pa.array(values, pa.list_(pa.int64()))}


TEXT = pa.array(["a", "b", "c"] * 10)
DAYS = pa.array([0] * N, pa.date32())
CASES = {
    "nothing but the label": ({"label": LABELS}, "", "got `label`"),
    "text and dates": (
        FEATURES | {"city": TEXT, "day": DAYS},
        ".city",
        "got text in `city`, dates in `day`; encode them as numbers, or name the columns",
    ),
    "a struct": (FEATURES | {"box": [{"x": 1}] * N}, ".box", "got struct<x: int64> in `box`"),
    "index of pandas": (FEATURES | {"__index_level_0__": AGE}, "", "(index=False)"),
    "null label": (
        FEATURES | {"label": nulled(LABELS, 17)},
        ".label[17]",
        "or the column if none has",
    ),
    "ragged": (
        replaced("input_ids", 17, [1] * 9),
        ".input_ids[17]",
        'of 8 values as in the rows before, got 9; pad them, with a tokenizer by padding="max',
    ),
    "null list": (replaced("input_ids", 17, None), ".input_ids[17]", "a list, got an"),
    "null in a list": (
        replaced("input_ids", 17, [1] * 7 + [None]),
        ".input_ids[17]",
        "a number, got an empty cell",
    ),
    "integer beyond 64 bits": (
        TOKENS | {"input_ids": pa.array([[0, 1]] * 29 + [[0, 2**63]], pa.list_(pa.uint64()))},
        ".input_ids[29]",
        "got 9223372036854775808",
    ),
    "infinity in a list": (
        {"x": [[0.0, 1.0]] * 29 + [[0.0, np.inf]], "label": LABELS},
        ".x[29]",
        "got inf at [1]",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_broken_rule_is_named_with_its_place(path, case):
    columns, location, message = CASES[case]
    check_refused(write_parquet(path, columns, row_group_size=7), location, message)


ASKED_CASES = {
    "no such column": (
        {"x": ["years"]},
        "missing: `years`; got also `age`, `income`, `city`",
    ),
    "typed otherwise": ({"x": ["age", "incme"]}, "did you mean `income`?"),
    "label typed otherwise": ({"label": ["lable"]}, "did you mean `label`?"),
    "no column": ({"x": []}, "config.columns names no column for `x`"),
    "no such label": ({"label": ["y"]}, "got `y`; there are `age`, `label`, `income`"),
    "two labels": ({"label": ["age", "income"]}, "to name one column, got `age`, `income`"),
    "text": ({"x": ["city", "age"]}, "got text in `city`"),
    "a list and a number": ({"x": ["ids", "age"]}, "or one column of lists, got `ids`, `age`"),
}


@pytest.mark.parametrize("case", ASKED_CASES)
def test_columns_that_cannot_be_read_as_asked_are_refused(path, case):
    asked, message = ASKED_CASES[case]
    columns = FEATURES | {"city": TEXT, "ids": TOKENS["input_ids"]}
    path = write_parquet(path, columns)
    error = refusal(path, reading=Reading(columns=asked))
    assert type(error) is InvalidDataset
    assert message in error.message


CSV_CASES = {
    "text alone": ("text,label\ngood,1\n", ".text", "tokenise text first"),
    "text": ("age,city,label\n1,Oslo,1\n", ".city", "got text in `city`; encode"),
    "text further down": ("age,label\n1,0\nold,1\n", ".age[1]", "got 'old'"),
    "infinity": ("age,label\n1,0\ninf,1\n", ".age[1]", "got inf"),
    "index": (",age,label\n0,1,0\n", "", "(index=False)"),
    "no rows": ("age,label\n", "", "at least one sample"),
    "float label": ("age,label\n1,1.5\n", ".label[0]", "an integer, got '1.5'"),
    "name below indices": ("age,label\n1,1\n1,cat\n", ".label[1]", "got 'cat'"),
    "empty name": ("age,label\n1,cat\n1,\n", ".label[1]", "got an empty cell"),
    "long name": (f"age,label\n1,{'c' * 201}\n", ".label[0]", "got 201"),
}


@pytest.mark.parametrize("case", CSV_CASES)
def test_a_broken_rule_of_csv_is_named_with_its_place(path, case):
    text, location, message = CSV_CASES[case]
    check_refused(write_text(path, text), location, message)


def test_the_note_names_up_to_30_columns(path):
    names = [f"feature {k}" for k in range(31)]
    for n in (30, 31):
        table = dict.fromkeys(names[:n], INCOME) | {"label": LABELS}
        (note,) = info_of(write_columns(path, "csv", table)).notes
        assert all(f"`{name}`" in note for name in names[:30])
        assert ("…" in note) == (n > 30)
