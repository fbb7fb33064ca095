"""Missing values of features are read as NaN in every format; infinity stays refused."""

import numpy as np
import pyarrow as pa
import pytest
from dataset_files import (
    COLUMN_FORMATS,
    check_read,
    check_refused,
    read_all,
    write_columns,
    write_npz,
    write_parquet,
    write_text,
)

GAP = np.nan
LABELS = np.array([0, 1, 0])


@pytest.mark.parametrize("cell", ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"])
def test_cells_of_csv(path, cell) -> None:
    write_text(path, f"a,b,c,label\n{cell},1,true,0\n2.5,{cell},{cell},1\n3,{cell},False,0\n")
    check_read(path, {"inputs": np.array([[GAP, 1, 1], [2.5, GAP, GAP], [3, GAP, 0]])}, LABELS)


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


@pytest.mark.parametrize("other", [(1, 2, 3), (0.5, 1.5, 2.5)], ids=["int64", "float64"])
@pytest.mark.parametrize("with_statistics", [True, False])
@pytest.mark.parametrize("dtype", COLUMNS)
def test_columns_of_parquet(path, dtype, with_statistics, other) -> None:
    column, expected = COLUMNS[dtype]
    table = {"a": column, "b": pa.array(other), "label": LABELS}
    write_parquet(path, table, row_group_size=2, write_statistics=with_statistics)
    arrays, labels = read_all(path)
    np.testing.assert_array_equal(labels, LABELS)
    np.testing.assert_array_equal(arrays["inputs"], np.c_[expected, other])


# Wider arrays are embeddings or pictures; what is known of a table is kept by column.
WIDE = np.ones((3, 257))
WIDE[1, 4] = GAP


REFUSED = [(np.array([[1, GAP], [GAP, -np.inf], [3, 4]]), 1, "got -inf"), (WIDE, 4, "")]


@pytest.mark.parametrize(("inputs", "column", "named"), REFUSED)
@pytest.mark.parametrize("file_format", COLUMN_FORMATS)
def test_infinity_and_gaps_of_other_inputs_are_refused(path, file_format, inputs, column, named):
    if file_format == "npz":
        write_npz(path, inputs=inputs, labels=LABELS)
        return check_refused(path, ".inputs[1]", named or "256")
    table = {f"f{k}": pa.array(values, from_pandas=True) for k, values in enumerate(inputs.T)}
    if file_format == "csv":
        cells = np.where(np.isnan(inputs), "", inputs.astype(str))
        table = dict(zip(table, cells.T, strict=True))
    write_columns(path, file_format, table | {"label": LABELS})
    return check_refused(path, f".f{column}[1]", named or "empty cell")
