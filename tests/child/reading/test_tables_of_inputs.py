"""Tables: features side by side, lists as arrays, outputs by name, in constant memory."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from dataset_files import (
    LIMITS,
    TABLE_FORMATS,
    check_read,
    check_refused,
    info_of,
    output_columns,
    write_columns,
    write_parquet,
)

from service.child.reading.open_set import open_dataset
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


def batches_of(path, size):
    with open_dataset(path, location="calibration", limits=LIMITS) as dataset:
        yield from dataset.batches(size)


@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_features_are_side_by_side_in_the_order_of_the_file(path, file_format):
    path = write_columns(path, file_format, FEATURES | {"uncertainty_own": INCOME})
    known = {"kind": "inputs", "format": file_format, "n_classes": None, "supplied": ("own",)}
    info = check_read(path, {"inputs": INPUTS}, LABELS, **known)
    assert "2, `age`, `income`" in info.notes[0]
    check_refused(path, ".label[2]", "got 2", limits=DatasetLimits(max_classes=2))


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_columns_of_outputs_are_read_by_name(path, file_format, kind):
    outputs = RNG.dirichlet(np.ones(12), size=N)
    if file_format == "parquet":  # keeps the precision
        outputs = outputs.astype("f4" if kind == "logits" else "f2")
    table = output_columns(outputs, LABELS, "logit_" if kind == "logits" else "prob_")
    table |= {"uncertainty_human": INCOME}
    for _ in range(3):
        names = RNG.permutation(list(table)).tolist()
        write_columns(path, file_format, {name: table[name] for name in names})
        known = {"kind": kind, "format": file_format, "n_classes": 12, "supplied": ("human",)}
        check_read(path, {kind: outputs}, LABELS, **known)
    (batch,) = batches_of(path, N)
    assert batch.arrays[kind].flags.c_contiguous


def test_lists_of_outputs_are_read_as_arrays_of_their_name(path):
    for kind, outputs in (("logits", IDS / 7), ("probabilities", RNG.dirichlet(np.ones(8), N))):
        write_parquet(path, {"text": ["a"] * N, kind: outputs.tolist(), "label": LABELS})
        check_read(path, {kind: outputs}, LABELS, kind=kind, n_classes=8)
    with_inputs = Reading(kind="inputs")
    check_read(path, {"probabilities": outputs}, LABELS, kind="inputs", reading=with_inputs)


def test_decimals_are_numbers_and_views_are_text(path):
    incomes = [Decimal(f"{x:.3f}") for x in INCOME]
    columns = {"x": pa.array(incomes, pa.decimal128(12, 3)), "ids": [[i, i] for i in incomes]}
    columns["label"] = pa.array([Decimal(int(x)) for x in LABELS], pa.decimal128(12, 0))
    expected = np.array(incomes, np.float64)
    write_parquet(path, {name: columns[name] for name in ("x", "label")})
    check_read(path, {"inputs": expected[:, None]}, LABELS)
    write_parquet(path, columns)
    check_read(path, {"ids": np.stack([expected] * 2, axis=1)}, LABELS)
    names = pa.array(np.array(["a", "b", "c"])[LABELS]).cast(pa.string_view())
    write_parquet(path, {"x": INCOME, "label": names})
    check_read(path, {"inputs": INCOME[:, None]}, LABELS, class_map={"a": 0, "b": 1, "c": 2})


TYPES = [(["float32", "int16", "bool"], "float32"), (["float32", "int32"], "float64")]
TYPES += [(["float16", "float16"], "float16"), (["int8", "int64"], "int64")]
TYPES += [(["uint64", "int64"], "float64")]


@pytest.mark.parametrize(("dtypes", "expected"), TYPES)
def test_features_get_the_type_that_holds_all_of_them(path, dtypes, expected):
    columns = {f"x{k}": (AGE % 2).astype(dtype) for k, dtype in enumerate(dtypes)}
    write_parquet(path, columns | {"label": LABELS})
    inputs = np.stack([AGE % 2] * len(dtypes), axis=1).astype(expected)
    check_read(path, {"inputs": inputs}, LABELS)


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


NESTED = {
    "lists": pa.list_(pa.list_(pa.float64())),
    "large lists": pa.large_list(pa.list_(pa.float32())),
    "lists of one length": pa.list_(pa.list_(pa.float16(), 2), 4),
}


@pytest.mark.parametrize("kind", NESTED)
def test_nested_lists_keep_their_shape_and_precision(path, kind):
    number = NESTED[kind].value_type.value_type
    series = RNG.normal(size=(N, 4, 2)).astype(number.to_pandas_dtype())
    rows = pa.array([[list(inner) for inner in outer] for outer in series], NESTED[kind])
    write_parquet(path, {"series": rows, "label": LABELS}, row_group_size=11)
    check_read(path, {"series": series}, LABELS)


def test_columns_are_read_as_the_caller_names_them(path):
    columns = TOKENS | {"income": INCOME, "age": AGE, "city": ["x"] * N, "target": 2 - LABELS}
    named = {"ids": ["input_ids"], "plain": ["age", "income"], "one": ["age"], "label": ["target"]}
    arrays = {"ids": IDS, "plain": INPUTS, "one": AGE[:, None]}
    reading = Reading(columns=named)
    check_read(write_parquet(path, columns), arrays, 2 - LABELS, reading=reading)


@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_a_label_may_have_another_name_or_be_missing(path, file_format):
    write_columns(path, file_format, FEATURES | {"target": 2 - LABELS})
    # The column `label` is no feature: it may be the same thing in other words.
    reading = Reading(columns={"label": ["target"]})
    check_read(path, {"inputs": INPUTS}, 2 - LABELS, reading=reading)
    write_columns(path, file_format, {"age": AGE, "income": INCOME})
    check_refused(path, ".label", "config.columns")


@pytest.mark.parametrize("kind", ["csv", "lists"])
def test_memory_does_not_grow_with_the_rows(path, kind):
    """Sets of 29 MB; blocks of CSV are read ahead, Parquet has pages and dictionaries."""
    n_samples, bound = (600_000, 20_000_000) if kind == "csv" else (60_000, 25_000_000)
    labels = np.arange(n_samples) % 5
    if kind == "csv":
        outputs = RNG.normal(size=(n_samples, 5)).astype(np.float32)
        pa_csv.write_csv(pa.table(output_columns(outputs, labels)), path)
    else:
        ids = pa.array(RNG.integers(0, 30_000, n_samples * 128).astype(np.int32))
        lists = pa.FixedSizeListArray.from_arrays(ids, 128)
        write_parquet(path, {"ids": lists, "label": labels})
    assert path.stat().st_size > 12_000_000
    before = pa.total_allocated_bytes()
    assert max(pa.total_allocated_bytes() for _ in batches_of(path, 1000)) - before < bound
