"""CSV and Parquet of outputs: columns by name, rows by number, streams of constant memory."""

import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from dataset_files import LIMITS, read_all, refusal, write_parquet, write_text
from hypothesis import given, settings
from hypothesis import strategies as st

from service.datasets import ArrayInfo, DatasetLimits, open_dataset
from service.datasets.parquet import MAX_FOOTER_BYTES
from service.errors import InvalidDataset, InvalidInput, TooLarge

HEADER = "label,logit_0,logit_1,logit_2\n"
ROWS = "0,0.5,-1,2\n2,1e-3,4,5\n1,6,7,8\n"


def columns(
    outputs: np.ndarray, labels: np.ndarray, prefix: str = "logit_"
) -> dict[str, np.ndarray]:
    return {"label": labels} | {f"{prefix}{k}": outputs[:, k] for k in range(outputs.shape[1])}


def csv_text(table: dict[str, np.ndarray], order: list[str]) -> str:
    rows = zip(*(table[name].tolist() for name in order), strict=True)
    return "\n".join([",".join(order), *(",".join(map(repr, row)) for row in rows)]) + "\n"


@settings(deadline=None, max_examples=40)
@given(data=st.data(), prefix=st.sampled_from(["logit_", "prob_"]), batch_size=st.integers(1, 60))
def test_columns_are_read_by_name(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, prefix: str, batch_size: int
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n_samples, n_classes = data.draw(st.integers(1, 50)), data.draw(st.integers(2, 12))
    outputs = rng.dirichlet(np.ones(n_classes), size=n_samples)
    labels = rng.integers(0, n_classes, n_samples)
    table = columns(outputs, labels, prefix) | {"uncertainty_human": rng.random(n_samples)}
    order = data.draw(st.permutations(list(table)))
    folder = tmp_path_factory.mktemp("tables")
    paths = [
        write_text(folder / "set.csv", csv_text(table, order)),
        write_parquet(
            folder / "set.parquet",
            {name: table[name] for name in order},
            row_group_size=data.draw(st.integers(1, 60)),
        ),
    ]
    for path in paths:
        found, found_labels = read_all(path, batch_size=batch_size)
        (values,) = found.values()
        np.testing.assert_array_equal(values, outputs)
        np.testing.assert_array_equal(found_labels, labels)
        assert values.flags.c_contiguous
        with open_dataset(path, location="calibration", limits=LIMITS) as dataset:
            info = dataset.info
        kind = {"logit_": "logits", "prob_": "probabilities"}[prefix]
        assert (info.kind, info.format) == (kind, path.suffix[1:])
        assert info.arrays == {kind: ArrayInfo("float64", (n_samples, n_classes))}
        assert (info.n_samples, info.n_classes) == (n_samples, n_classes)
        assert info.supplied == ("human",)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + HEADER + ROWS,
        (HEADER + ROWS).replace("\n", "\r\n"),
        (HEADER + ROWS).rstrip("\n"),
        HEADER + ROWS.replace("\n", "\n\n"),
        HEADER.replace("label", '"label"') + ROWS.replace("0.5", '"0.5"'),
        HEADER + ROWS.replace(",", ", "),
    ],
    ids=["byte order mark", "CRLF", "no last newline", "blank lines", "quotes", "spaces"],
)
def test_dialects_of_csv(tmp_path: Path, text: str) -> None:
    found, labels = read_all(write_text(tmp_path / "set", text))
    np.testing.assert_array_equal(found["logits"], [[0.5, -1, 2], [1e-3, 4, 5], [6, 7, 8]])
    np.testing.assert_array_equal(labels, [0, 2, 1])


CSV_CASES = {
    "header alone": (HEADER, "calibration", "at least one sample"),
    "no label": ("logit_0,logit_1\n1,2\n", "calibration.label", "a column `label`"),
    "labels for label": ("labels,logit_0,logit_1\n1,2,3\n", "calibration.label", "`labels`"),
    "no outputs": ("label,score\n1,2\n", "calibration", "got `label`, `score`"),
    "gap": ("label,logit_0,logit_2\n0,1,2\n", "calibration.logit_1", "none for class 1"),
    "counted from one": (
        "label,logit_1,logit_2\n1,1,2\n",
        "calibration.logit_0",
        "none for class 0",
    ),
    "both kinds": ("label,logit_0,prob_1\n0,1,2\n", "calibration", "columns of both"),
    "column twice": ("label,logit_0,logit_1,logit_1\n0,1,2,3\n", "calibration.logit_1", "twice"),
    "padded number": ("label,logit_00,logit_1\n0,1,2\n", "calibration", "`logit_00`"),
    "index column": (",label,logit_0,logit_1\n0,0,1,2\n", "calibration", "leave other columns out"),
    "one class": ("label,prob_0\n0,1\n", "calibration", "at least 2 classes"),
    "semicolons": (HEADER.replace(",", ";") + "0;1;2;3\n", "calibration", "by commas"),
    "tabs": (HEADER.replace(",", "\t") + "0\t1\t2\t3\n", "calibration", "by commas"),
    "text in numbers": (HEADER + ROWS + "0,1,x,3\n", "calibration.logit_1[3]", "got 'x'"),
    "hexadecimal": (HEADER + "0,1,0x10,3\n", "calibration.logit_1[0]", "got '0x10'"),
    "text after blank lines": (HEADER + "0,1,2,3\n\n\n0,1,x,3\n", "calibration.logit_1[1]", "'x'"),
    "float label": (HEADER + ROWS + "1.0,1,2,3\n", "calibration.label[3]", "an integer, got '1.0'"),
    "class name": (HEADER + "cat,1,2,3\n", "calibration.label[0]", "got 'cat'"),
    "huge label": (HEADER + "9" * 30 + ",1,2,3\n", "calibration.label[0]", "an integer"),
    "label out of range": (HEADER + ROWS + "3,1,2,3\n", "calibration.label[3]", "from 0 to 2"),
    "negative label": (HEADER + ROWS + "-1,1,2,3\n", "calibration.label[3]", "without a label"),
    "empty label": (HEADER + ROWS + ",1,2,3\n", "calibration.label[3]", "empty cell"),
    "empty cell": (HEADER + ROWS + "0,1,,3\n", "calibration.logit_1[3]", "empty cell"),
    "nan": (HEADER + ROWS + "0,1,nan,3\n", "calibration.logit_1[3]", "got nan"),
    "NA": (HEADER + ROWS + "0,1,NA,3\n", "calibration.logit_1[3]", "got 'NA'"),
    "overflow": (HEADER + ROWS + "0,1,1e999,3\n", "calibration.logit_1[3]", "got inf"),
    "too few values": (HEADER + ROWS + "0,1,2\n", "calibration[3]", "expected 4 values, got 3"),
    "too many values": (HEADER + "0,1,2,3,4\n", "calibration[0]", "expected 4 values, got 5"),
    "newline in a cell": (HEADER + '0,"1\n",2,3\n', "calibration", "expected"),
    "open quote": (HEADER + '0,"1,2,3\n', "calibration", "expected"),
    "open quote in the header": ('label,"logit_0,logit_1\n0,1,2\n', "calibration", "header line"),
    "prob above one": (
        "label,prob_0,prob_1\n0,0.5,0.5\n0,-1,2\n",
        "calibration.prob_0[1]",
        "from 0 to 1, got -1",
    ),
    "prob sum": (
        "label,prob_0,prob_1\n0,0.5,0.5\n0,0.5,0.6\n",
        "calibration.prob_*[1]",
        "got 1.1",
    ),
}


@pytest.mark.parametrize("case", CSV_CASES)
def test_a_broken_rule_of_csv_is_named_with_its_place(tmp_path: Path, case: str) -> None:
    text, location, message = CSV_CASES[case]
    error = refusal(write_text(tmp_path / "set.csv", text))
    assert type(error) is InvalidDataset
    assert error.violations[0].location.startswith(location)
    assert message in error.violations[0].message


def test_rows_of_csv_are_counted_over_blocks(tmp_path: Path) -> None:
    text = HEADER + "0,1.000000001,2.000000001,3.000000001\n" * 100_000
    path = write_text(tmp_path / "set.csv", text + "0,1,two,3\n")
    assert refusal(path).violations[0].location == "calibration.logit_1[100000]"
    path = write_text(tmp_path / "set.csv", text + "0,1,nan,3\n")
    assert refusal(path, batch_size=5000).violations[0].location == "calibration.logit_1[100000]"


LABELS = np.arange(40) % 3
LOGITS = np.linspace(-1, 1, 120, dtype=np.float32).reshape(40, 3)
TABLE = columns(LOGITS, LABELS)
PARQUET_CASES = {
    "no rows": (
        {name: values[:0] for name, values in TABLE.items()},
        "calibration",
        "at least one sample",
    ),
    "float label": (
        TABLE | {"label": LABELS.astype(float)},
        "calibration.label",
        "cast the column to int64",
    ),
    "text label": (TABLE | {"label": LABELS.astype(str)}, "calibration.label", "got string"),
    "integer logits": (
        TABLE | {"logit_1": LABELS},
        "calibration.logit_1",
        "cast the column to float32",
    ),
    "list of logits": (
        TABLE | {"logit_1": [[1.0]] * 40},
        "calibration.logit_1",
        "expected floats",
    ),
    "missing label": (
        {name: values for name, values in TABLE.items() if name != "label"},
        "calibration.label",
        "a column `label`",
    ),
    "null label": (
        TABLE | {"label": pa.array([*LABELS[:-1].tolist(), None])},
        "calibration.label[39]",
        "empty cell",
    ),
    "null logit": (
        TABLE | {"logit_2": pa.array([*LOGITS[:-2, 2].tolist(), None, None])},
        "calibration.logit_2[38]",
        "empty cell",
    ),
    "nan": (
        TABLE | {"logit_2": np.append(LOGITS[:-1, 2], np.nan)},
        "calibration.logit_2[39]",
        "got nan",
    ),
    "label out of range": (
        TABLE | {"label": np.append(LABELS[:-1], 3).astype(np.uint64)},
        "calibration.label[39]",
        "from 0 to 2, got 3",
    ),
    "other columns": (TABLE | {"path": LABELS}, "calibration", "got also `path`"),
}


@pytest.mark.parametrize("case", PARQUET_CASES)
def test_a_broken_rule_of_parquet_is_named_with_its_place(tmp_path: Path, case: str) -> None:
    table, location, message = PARQUET_CASES[case]
    error = refusal(write_parquet(tmp_path / "set.parquet", table, row_group_size=16))
    assert type(error) is InvalidDataset
    assert error.violations[0].location == location
    assert message in error.violations[0].message


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_parquet_keeps_the_precision_of_its_columns(tmp_path: Path, dtype: str) -> None:
    table = columns(LOGITS.astype(dtype), LABELS.astype(np.int8))
    found, labels = read_all(write_parquet(tmp_path / "set.parquet", table))
    np.testing.assert_array_equal(found["logits"], LOGITS.astype(dtype))
    assert (found["logits"].dtype, labels.dtype) == (dtype, np.int64)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("limits", [DatasetLimits(max_samples=39), DatasetLimits(max_classes=2)])
def test_limits_hold_for_tables(tmp_path: Path, suffix: str, limits: DatasetLimits) -> None:
    path = tmp_path / f"set.{suffix}"
    if suffix == "csv":
        write_text(path, csv_text(TABLE, list(TABLE)))
    else:
        write_parquet(path, TABLE)
    assert type(refusal(path, limits=limits)) is TooLarge


def test_a_csv_of_a_million_columns_is_refused_by_its_header(tmp_path: Path) -> None:
    names = ",".join(f"logit_{k}" for k in range(1_000_000))
    path = write_text(tmp_path / "long.csv", f"label,{names}\n")
    assert type(refusal(path)) is TooLarge
    path = write_text(tmp_path / "short.csv", "label" + "," * 1_000_000 + "\n")
    error = refusal(path)
    assert type(error) is TooLarge
    assert "got 1000001" in error.message


def test_a_parquet_of_too_many_columns_is_refused(tmp_path: Path) -> None:
    table = columns(np.zeros((1, 1200), np.float32), np.zeros(1, int))
    path = write_parquet(tmp_path / "set.parquet", table)
    error = refusal(path, limits=DatasetLimits(max_classes=100))
    assert type(error) is TooLarge
    assert "columns, got 1201" in error.message


def test_rows_that_cost_no_bytes_are_counted_before_they_are_decoded(tmp_path: Path) -> None:
    n_samples = 2_000_000
    zeros = pa.array(np.zeros(n_samples, np.float32))
    table = {"label": zeros.cast(pa.int32()), "logit_0": zeros, "logit_1": zeros}
    path = write_parquet(tmp_path / "set.parquet", table)
    assert path.stat().st_size < 100_000
    error = refusal(path, limits=DatasetLimits(max_samples=1_999_999))
    assert type(error) is TooLarge
    error = refusal(path, limits=DatasetLimits(max_inflated_bytes=1000))
    assert type(error) is TooLarge
    assert "bytes" in error.message


@pytest.mark.parametrize("claim", [MAX_FOOTER_BYTES + 1, 2**32 - 1, 10_000, 0])
def test_a_footer_is_a_claim(tmp_path: Path, claim: int) -> None:
    path = write_parquet(tmp_path / "set.parquet", TABLE)
    path.write_bytes(path.read_bytes()[:-8] + struct.pack("<L", claim) + b"PAR1")
    refusal(path)


def test_a_mutated_parquet_is_read_or_refused(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "set.parquet", TABLE, row_group_size=16)
    whole = path.read_bytes()
    for size in range(5, len(whole), 29):
        path.write_bytes(whole[:size])
        refusal(path)
    rng = np.random.default_rng(0)
    for _ in range(200):
        data = bytearray(whole)
        data[rng.integers(4, len(data))] = rng.integers(256)
        path.write_bytes(data)
        try:
            read_all(path)
        except InvalidInput as error:
            assert error.violations  # noqa: PT017 - either outcome is right, any other exception wrong


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, suffix: str) -> None:
    n_samples = 600_000
    rng = np.random.default_rng(0)
    table = columns(
        rng.normal(size=(n_samples, 5)).astype(np.float32), rng.integers(0, 5, n_samples)
    )
    path = tmp_path / f"set.{suffix}"
    if suffix == "csv":
        pa.csv.write_csv(pa.table(table), path)
    else:
        write_parquet(path, table)
    assert path.stat().st_size > 12_000_000
    del table
    before = pa.total_allocated_bytes()
    peak = 0
    with open_dataset(path, location="calibration", limits=LIMITS) as dataset:
        for _ in dataset.batches(1000):
            peak = max(peak, pa.total_allocated_bytes() - before)
    # Blocks of CSV read ahead; pages, dictionaries and buffers of Parquet. The set has 29 MB.
    assert peak < 20_000_000
