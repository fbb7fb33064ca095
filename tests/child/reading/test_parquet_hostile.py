"""Parquet that asks for much with few bytes, or whose pages are not what its footer says."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from dataset_files import LIMITS, check_mutations, output_columns, read_all, refusal, write_parquet

from service.child.reading.open_set import open_dataset
from service.errors import InvalidDataset, TooLarge
from service.runner.messages.limits import DatasetLimits

N = 1000


def lists(lengths: np.ndarray) -> pa.Array:
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(np.zeros(lengths.sum(), bool)))


def test_rows_of_lists_that_cost_no_bytes_are_counted(path):
    n_samples = 200_000
    path = write_parquet(
        path,
        {"ids": lists(np.full(n_samples, 64)), "label": np.zeros(n_samples, np.int8)},
        compression="zstd",
    )
    assert path.stat().st_size < 50_000
    for limits in (
        DatasetLimits(max_samples=n_samples - 1),
        DatasetLimits(max_inflated_bytes=n_samples * 64 * 8 - 1),
    ):
        assert type(refusal(path, limits=limits)) is TooLarge


def test_memory_does_not_grow_with_the_lists_of_a_row_group(path):
    n_samples = 60_000
    ids = np.random.default_rng(0).integers(0, 30_000, (n_samples, 128)).astype(np.int32)
    values = pa.FixedSizeListArray.from_arrays(pa.array(ids.ravel()), 128)
    path = write_parquet(path, {"ids": values, "label": ids[:, 0] % 2})
    assert pa_parquet.read_metadata(path).num_row_groups == 1
    del values
    before = pa.total_allocated_bytes()
    peak, n_seen = 0, 0
    with open_dataset(path, location="calibration", limits=LIMITS) as dataset:
        for batch in dataset.batches(500):
            peak = max(peak, pa.total_allocated_bytes() - before)
            np.testing.assert_array_equal(batch.arrays["ids"], ids[n_seen : n_seen + 500])
            n_seen += 500
    assert n_seen == n_samples
    # The set has 61 MB as it is decoded.
    assert peak < 25_000_000


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


MUTATED = {
    "inputs": {
        "ids": lists(np.full(40, 4)),
        "label": pa.array(["cat", "dog"] * 20),
        "uncertainty_own": np.linspace(0, 1, 40),
    },
    "outputs": output_columns(
        np.linspace(-1, 1, 120, dtype="f4").reshape(40, 3), np.arange(40) % 3
    ),
}


@pytest.mark.parametrize("kind", MUTATED)
def test_a_mutated_table_is_read_or_refused(path, kind):
    write_parquet(path, MUTATED[kind], row_group_size=16)
    check_mutations(path, step=59, times=225)
