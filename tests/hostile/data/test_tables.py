"""Tables that claim more than they hold, or hold it in a form that no honest program writes."""

import io
from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from hostile_case import TOO_LARGE, UNREAD, HostileCase, set_case
from keyed_service import logits_of

MEBIBYTE = 1024**2
ROWS = 60


def parquet(columns: dict[str, object], **options: object) -> bytes:
    """Return a Parquet file."""
    written = io.BytesIO()
    pa_parquet.write_table(pa.table(columns), written, **options)
    return written.getvalue()


def labels(n_rows: int = ROWS) -> np.ndarray:
    return np.arange(n_rows) % 3


@cache
def honest() -> bytes:
    outputs = np.random.default_rng(3).normal(size=(ROWS, 3)).astype(np.float32)
    return parquet({"label": labels()} | {f"logit_{k}": outputs[:, k] for k in range(3)})


def nested(depth: int, kind: str) -> pa.Array:
    """Return values this deep in lists, or in structs."""
    values = pa.array([1.0] * ROWS)
    offsets = pa.array(np.arange(ROWS + 1), pa.int32())
    for _ in range(depth):
        if kind == "list":
            values = pa.ListArray.from_arrays(offsets, values)
        else:
            values = pa.StructArray.from_arrays([values], ["inner"])
    return values


def dictionary_bomb() -> bytes:
    """Return a picture of 8 MiB, once, and rows that are all of it."""
    n_rows = 10_000
    indices = pa.array(np.zeros(n_rows, np.int32))
    column = pa.DictionaryArray.from_arrays(indices, pa.array([bytes(8 * MEBIBYTE)], pa.binary()))
    pictures = pa.StructArray.from_arrays([column], ["bytes"])
    columns = {"image": pictures, "label": labels(n_rows)}
    return parquet(columns, compression="zstd", store_schema=False, write_statistics=False)


def of_column(values: object) -> Callable[[], bytes]:
    return lambda: parquet({"label": labels(), "x": values})


MAP = pa.array([[("a", 1.0)]] * ROWS, pa.map_(pa.string(), pa.float64()))
PARQUET = [
    set_case("parquet_pages_of_zeros", lambda: b"PAR1" + bytes(300) + honest()[304:]),
    set_case("parquet_of_lists_100_deep", of_column(nested(100, "list"))),
    set_case("parquet_of_structs_100_deep", of_column(nested(100, "struct"))),
    set_case("parquet_of_a_map", of_column(MAP)),
    set_case("parquet_of_a_dictionary_bomb", dictionary_bomb, TOO_LARGE, preset="imagenet"),
    set_case("parquet_encrypted", lambda: b"PARE" + honest()[4:-4] + b"PARE", UNREAD),
]
LONG = logits_of(n=2000)
CSV = [
    set_case("csv_line_of_100_mb", lambda: b"label,x\n0," + b"1" * 100_000_000 + b"\n", seconds=20),
    set_case("nul_far_down", lambda: LONG + b"\n0,1,\0,0\n", says="calibration.logit_1[2000]"),
    set_case("csv_bad_utf_8_far_down", lambda: LONG + b"\n0,1,\xff,0\n"),
    set_case("csv_of_one_quote", lambda: b'"' + b"a" * MEBIBYTE, TOO_LARGE),
]


@pytest.mark.parametrize("case", PARQUET + CSV, ids=str)
def test_it_is_refused(hostile, case: HostileCase) -> None:
    hostile(case)
