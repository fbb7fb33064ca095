"""Tables: features side by side, lists as arrays, outputs by name, in constant memory."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from dataset_files import (
    LIMITS,
    TABLE_FORMATS,
    check_refused,
    info_of,
    output_columns,
    read_all,
    write_columns,
    write_parquet,
)

from service.child.reading.open_set import open_dataset
from service.runner.messages.dataset import ArrayInfo
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import Reading

N = 30
RNG = np.random.default_rng(0)
LABELS = np.arange(N) % 3
AGE = RNG.integers(0, 90, N)
INCOME = RNG.normal(size=N)
INPUTS = np.stack([AGE, INCOME], axis=1)
FEATURES = {"age": AGE, "label": LABELS, "income": INCOME}
IDS = RNG.integers(0, 30_000, (N, 8))
MASK = RNG.integers(0, 2, (N, 8))
TOKENS = {
    "input_ids": pa.array(IDS.tolist(), pa.list_(pa.int32())),
    "attention_mask": pa.array(MASK.tolist(), pa.list_(pa.int8(), 8)),
    "label": LABELS,
}


@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_features_are_side_by_side_in_the_order_of_the_file(path, file_format):
    path = write_columns(path, file_format, FEATURES | {"uncertainty_own": INCOME})
    for batch_size in (1, 7, 100):
        arrays, labels = read_all(path, batch_size=batch_size)
        np.testing.assert_array_equal(arrays["inputs"], INPUTS)
        np.testing.assert_array_equal(labels, LABELS)
    info = info_of(path)
    assert (info.kind, info.format, info.n_classes) == ("inputs", file_format, None)
    assert info.supplied == ("own",)
    assert info.arrays == {"inputs": ArrayInfo("float64", (N, 2))}
    assert "2, `age`, `income`" in info.notes[0]
    check_refused(path, ".label[2]", "got 2", limits=DatasetLimits(max_classes=2))


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_columns_of_outputs_are_read_by_name(path, file_format, kind):
    rng = np.random.default_rng(1)
    outputs = rng.dirichlet(np.ones(12), size=N)
    prefix = "logit_" if kind == "logits" else "prob_"
    table = output_columns(outputs, LABELS, prefix) | {"uncertainty_human": INCOME}
    for batch_size in (1, 7, 60):
        table = {name: table[name] for name in rng.permutation(list(table)).tolist()}
        arrays, labels = read_all(write_columns(path, file_format, table), batch_size=batch_size)
        np.testing.assert_array_equal(arrays[kind], outputs)
        np.testing.assert_array_equal(labels, LABELS)
        assert arrays[kind].flags.c_contiguous
        info = info_of(path)
        assert (info.kind, info.format, info.n_classes) == (kind, file_format, 12)
        assert info.arrays == {kind: ArrayInfo("float64", (N, 12))}
        assert info.supplied == ("human",)


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
    arrays, _ = read_all(write_parquet(path, columns | {"label": LABELS}))
    assert arrays["inputs"].dtype == expected
    np.testing.assert_array_equal(arrays["inputs"], np.stack([AGE % 2] * len(dtypes), axis=1))


@pytest.mark.parametrize("batch_size", [1, 7, 100])
def test_lists_are_arrays_of_64_bit_integers_by_name(path, batch_size):
    path = write_parquet(path, TOKENS, row_group_size=11)
    arrays, labels = read_all(path, batch_size=batch_size)
    assert list(arrays) == ["input_ids", "attention_mask"]
    np.testing.assert_array_equal(arrays["input_ids"], IDS)
    np.testing.assert_array_equal(arrays["attention_mask"], MASK)
    np.testing.assert_array_equal(labels, LABELS)
    assert {array.dtype for array in arrays.values()} == {np.dtype("int64")}


def test_notes_name_the_columns_that_are_not_read_and_up_to_30_that_are(path):
    more = {f"c{k}": AGE for k in range(4)} | {"text": ["x"] * N, "tags": [["a"]] * N}
    info = info_of(write_parquet(path, {"idx": AGE} | TOKENS | more))
    assert list(info.arrays) == ["input_ids", "attention_mask"]
    assert info.notes[0].endswith(" `idx`, `c0`, `c1`, `c2`, `c3`, ….")
    assert info_of(write_parquet(path, TOKENS)).notes == ()
    for n in (30, 31):
        names = [f"feature {k}" for k in range(n)]
        (note,) = info_of(write_parquet(path, dict.fromkeys(names, AGE) | {"label": LABELS})).notes
        assert all(f"`{name}`" in note for name in names[:30])
        assert ("…" in note) == (n > 30)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("kind", ["lists", "large lists", "lists of one length"])
def test_nested_lists_keep_their_shape_and_precision(path, dtype, kind):
    series = RNG.normal(size=(N, 4, 2)).astype(dtype)
    number = pa.from_numpy_dtype(dtype)
    arrow = {
        "lists": pa.list_(pa.list_(number)),
        "large lists": pa.large_list(pa.list_(number)),
        "lists of one length": pa.list_(pa.list_(number, 2), 4),
    }[kind]
    columns = {"series": pa.array([[list(r) for r in s] for s in series], arrow), "label": LABELS}
    arrays, _ = read_all(write_parquet(path, columns, row_group_size=11))
    np.testing.assert_array_equal(arrays["series"], series)
    assert arrays["series"].dtype == dtype


def test_columns_are_read_as_the_caller_names_them(path):
    columns = TOKENS | {"income": INCOME, "age": AGE, "city": ["x"] * N, "target": 2 - LABELS}
    named = {"ids": ["input_ids"], "plain": ["age", "income"], "one": ["age"], "label": ["target"]}
    arrays, labels = read_all(write_parquet(path, columns), reading=Reading(columns=named))
    assert list(arrays) == ["ids", "plain", "one"]
    np.testing.assert_array_equal(arrays["ids"], IDS)
    np.testing.assert_array_equal(arrays["plain"], INPUTS)
    np.testing.assert_array_equal(arrays["one"], AGE[:, None])
    np.testing.assert_array_equal(labels, 2 - LABELS)


@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_a_label_of_another_name_is_no_feature(path, file_format):
    path = write_columns(path, file_format, FEATURES | {"target": 2 - LABELS})
    arrays, labels = read_all(path, reading=Reading(columns={"label": ["target"]}))
    # Nor is the column `label`, which may be the same thing in other words.
    np.testing.assert_array_equal(arrays["inputs"], INPUTS)
    np.testing.assert_array_equal(labels, 2 - LABELS)


@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_inputs_without_labels(path, file_format):
    path = write_columns(path, file_format, {"age": AGE, "income": INCOME})
    arrays, labels = read_all(path, labels_required=False)
    np.testing.assert_array_equal(arrays["inputs"], INPUTS)
    assert labels.tolist() == [0] * N
    assert not info_of(path, labels_required=False).labelled
    check_refused(path, ".label", "config.columns")


@pytest.mark.parametrize(
    ("kind", "n_samples", "bound"),
    [("csv", 600_000, 20_000_000), ("parquet", 600_000, 20_000_000), ("lists", 60_000, 25_000_000)],
)
def test_memory_does_not_grow_with_the_rows(path, kind, n_samples, bound):
    """Sets of 29 and 61 MB; blocks of CSV are read ahead, Parquet has pages and dictionaries."""
    labels = np.arange(n_samples) % 5
    if kind == "lists":
        ids = RNG.integers(0, 30_000, n_samples * 128).astype(np.int32)
        table = {"ids": pa.FixedSizeListArray.from_arrays(pa.array(ids), 128), "label": labels}
    else:
        table = output_columns(RNG.normal(size=(n_samples, 5)).astype(np.float32), labels)
    if kind == "csv":
        pa_csv.write_csv(pa.table(table), path)
    else:
        write_parquet(path, table)
    assert path.stat().st_size > 12_000_000
    del table
    before, peak = pa.total_allocated_bytes(), 0
    with open_dataset(path, location="calibration", limits=LIMITS) as dataset:
        for _ in dataset.batches(1000):
            peak = max(peak, pa.total_allocated_bytes() - before)
    assert peak < bound
