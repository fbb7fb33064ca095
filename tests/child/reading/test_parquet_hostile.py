"""Parquet that asks for much with few bytes, or whose pages are not what its footer says."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from dataset_files import check_mutations, output_columns, read_all, refusal, write_parquet

from service.errors import InvalidDataset, TooLarge
from service.runner.messages.limits import DatasetLimits

N = 1000


def lists(n_rows: int, length: int) -> pa.Array:
    offsets = pa.array(length * np.arange(n_rows + 1), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(np.zeros(n_rows * length, bool)))


def test_rows_of_lists_that_cost_no_bytes_are_counted(path):
    n_samples = 200_000
    columns = {"ids": lists(n_samples, 64), "label": np.zeros(n_samples, np.int8)}
    assert write_parquet(path, columns, compression="zstd").stat().st_size < 50_000
    for limits in (
        DatasetLimits(max_samples=n_samples - 1),
        DatasetLimits(max_inflated_bytes=n_samples * 64 * 8 - 1),
    ):
        assert type(refusal(path, limits=limits)) is TooLarge


def varint(value: int) -> bytes:
    """Return a number as Thrift's compact protocol writes it in two bytes."""
    low, high = divmod(2 * value, 128)[::-1]
    assert high < 128
    return bytes([low | 0x80, high])


@pytest.mark.parametrize("claimed", [N, N - 1, N + 1, 8191])
def test_pages_have_as_many_values_as_the_footer_says(path, claimed):
    table = {"x": np.arange(N), "label": np.arange(N) % 2}
    write_parquet(path, table, compression="none", use_dictionary=False)
    header = pa_parquet.read_metadata(path).row_group(0).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    at = data.index(varint(N), header, header + 30)
    data[at : at + 2] = varint(claimed)
    path.write_bytes(data)
    if claimed == N:
        assert read_all(path)[0]["inputs"].ravel().tolist() == list(range(N))
    else:
        assert type(refusal(path)) is InvalidDataset


INPUTS = {"ids": lists(40, 4), "label": ["cat", "dog"] * 20, "uncertainty_own": np.ones(40)}
OUTPUTS = output_columns(np.linspace(-1, 1, 120, dtype="f4").reshape(40, 3), np.arange(40) % 3)


@pytest.mark.parametrize("columns", [INPUTS, OUTPUTS], ids=["inputs", "outputs"])
def test_a_changed_table_is_read_or_refused(path, columns):
    write_parquet(path, columns, row_group_size=16)
    check_mutations(path, step=79, times=150)
