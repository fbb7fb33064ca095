"""Missing values of features are read as NaN in every format; infinity stays refused."""

import numpy as np
import pyarrow as pa
import pytest
from dataset_files import check_refused, read_all, write_npz, write_parquet, write_text

GAP = np.nan
LABELS = np.array([0, 1, 0])


def read(path) -> np.ndarray:
    arrays, labels = read_all(path)
    np.testing.assert_array_equal(labels, LABELS)
    return arrays["inputs"]


@pytest.mark.parametrize("cell", ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"])
def test_cells_of_csv(tmp_path, cell) -> None:
    text = f"a,b,label\n{cell},1,0\n2.5,{cell},1\n3,{cell},0\n"
    found = read(write_text(tmp_path / "set.csv", text))
    np.testing.assert_array_equal(found, [[GAP, 1], [2.5, GAP], [3, GAP]])


@pytest.mark.parametrize("first", ["true", "False"])
def test_booleans_of_csv(tmp_path, first) -> None:
    text = f"a,label\n{first},0\n,1\ntrue,0\n"
    found = read(write_text(tmp_path / "set.csv", text))
    np.testing.assert_array_equal(found, [[first == "true"], [GAP], [1]])


def test_classes_may_be_called_so(tmp_path) -> None:
    path = write_text(tmp_path / "set.csv", "a,label\n1,NA\n,None\n3,NA\n")
    arrays, labels = read_all(path)
    assert labels.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(arrays["inputs"], [[1], [GAP], [3]])


# Integers and booleans of Arrow are null; NaN is a number of floats.
COLUMNS = {
    "int8": (pa.array([None, -7, 3], pa.int8()), [GAP, -7, 3]),
    "int64": (pa.array([2**53, None, 3], pa.int64()), [2**53, GAP, 3]),
    "uint64": (pa.array([1, None, 2**63], pa.uint64()), [1, GAP, 2**63]),
    "bool": (pa.array([True, None, False]), [1, GAP, 0]),
    "float32": (pa.array([0.5, None, GAP], pa.float32()), [0.5, GAP, GAP]),
    "float16": (pa.array([0.5, GAP, 2], pa.float16()), [0.5, GAP, 2]),
    "float64": (pa.array([None, None, None], pa.float64()), [GAP, GAP, GAP]),
}


@pytest.mark.parametrize("other", [pa.array([1, 2, 3]), pa.array([0.5, 1.5, 2.5])])
@pytest.mark.parametrize("with_statistics", [True, False])
@pytest.mark.parametrize("dtype", COLUMNS)
def test_columns_of_parquet(tmp_path, dtype, with_statistics, other) -> None:
    column, expected = COLUMNS[dtype]
    table = {"a": column, "b": other, "label": LABELS}
    path = tmp_path / "set.parquet"
    write_parquet(path, table, row_group_size=2, write_statistics=with_statistics)
    found = read(path)
    np.testing.assert_array_equal(found, np.stack([expected, other.to_numpy()], axis=1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_arrays(tmp_path, dtype) -> None:
    inputs = np.array([[1, GAP], [GAP, GAP], [3, 4]], dtype)
    found = read(write_npz(tmp_path / "set.npz", inputs=inputs, labels=LABELS))
    np.testing.assert_array_equal(found, inputs)
    assert found.dtype == dtype


@pytest.mark.parametrize("file_format", ["csv", "parquet", "npz"])
def test_infinity_beside_a_missing_value_is_refused(tmp_path, file_format) -> None:
    path = tmp_path / f"set.{file_format}"
    if file_format == "npz":
        inputs = np.array([[1, GAP], [GAP, -np.inf], [3, 4]])
        write_npz(path, inputs=inputs, labels=LABELS)
        return check_refused(path, ".inputs[1]", "expected finite numbers, got -inf at [1]")
    if file_format == "csv":
        write_text(path, "a,b,label\n1,,0\n,-inf,1\n3,4,0\n")
    else:
        write_parquet(path, {"a": [1.0, None, 3], "b": [None, -np.inf, 4], "label": LABELS})
    return check_refused(path, ".b[1]", "expected finite numbers, got -inf")


@pytest.mark.parametrize("file_format", ["csv", "parquet", "npz"])
def test_only_tables_of_features_may_lack_values(tmp_path, file_format) -> None:
    """Wider arrays are embeddings or pictures; what is known of a table is kept by column."""
    inputs = np.ones((3, 257))
    inputs[1, 4] = GAP
    path = tmp_path / f"set.{file_format}"
    if file_format == "npz":
        write_npz(path, inputs=inputs, labels=LABELS)
        return check_refused(path, ".inputs[1]", "in tables of at most 256 columns only")
    names = [f"f{number}" for number in range(257)]
    if file_format == "csv":
        lines = [",".join([*map(str, row), "0"]).replace("nan", "") for row in inputs]
        write_text(path, "\n".join([",".join([*names, "label"]), *lines]))
    else:
        columns = dict(zip(names, inputs.T, strict=True))
        columns["f4"] = pa.array([1.0, None, 1.0])
        write_parquet(path, columns | {"label": LABELS})
    return check_refused(path, ".f4[1]", "expected a number, got an empty cell")
