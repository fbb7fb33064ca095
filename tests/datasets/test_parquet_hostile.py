"""Parquet that asks for much with few bytes, or whose pages are not what its footer says."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from dataset_files import LIMITS, read_all, refusal, write_parquet
from page_headers import claiming, one_page

from service.datasets import DatasetLimits, Reading, open_dataset
from service.datasets.parquet_pages import MAX_GROUP_VALUES, MAX_PAGE_BYTES
from service.datasets.thrift import ThriftError, read_struct
from service.errors import InvalidDataset, InvalidInput, TooLarge
from service.pictures.preprocessing import Preprocessing

AS_IT_IS = Reading(preprocessing=Preprocessing())
N = 1000


def lists(lengths: np.ndarray) -> pa.Array:
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(np.zeros(lengths.sum(), bool)))


def test_one_list_of_everything_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    lengths = np.array([8, 8, MAX_GROUP_VALUES - 16, 8])
    path = write_parquet(
        tmp_path / "set",
        {"ids": lists(lengths), "label": [0, 1, 0, 1]},
        compression="zstd",
        write_statistics=False,
        use_dictionary=False,
    )
    assert path.stat().st_size < 3000
    before = pa.total_allocated_bytes()
    error = refusal(path)
    assert type(error) is TooLarge
    assert error.violations[0].location == "calibration.ids"
    assert "row_group_size" in error.message
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_rows_of_lists_that_cost_no_bytes_are_counted(tmp_path: Path) -> None:
    n_samples = 200_000
    path = write_parquet(
        tmp_path / "set",
        {"ids": lists(np.full(n_samples, 64)), "label": np.zeros(n_samples, np.int8)},
        compression="zstd",
    )
    assert path.stat().st_size < 50_000
    for limits in (
        DatasetLimits(max_samples=n_samples - 1),
        DatasetLimits(max_inflated_bytes=n_samples * 64 * 8 - 1),
    ):
        assert type(refusal(path, limits=limits)) is TooLarge


def test_memory_does_not_grow_with_the_lists_of_a_row_group(tmp_path: Path) -> None:
    n_samples = 60_000
    ids = np.random.default_rng(0).integers(0, 30_000, (n_samples, 128)).astype(np.int32)
    values = pa.FixedSizeListArray.from_arrays(pa.array(ids.ravel()), 128)
    path = write_parquet(tmp_path / "set", {"ids": values, "label": ids[:, 0] % 2})
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


def test_the_plain_page_is_read(tmp_path: Path) -> None:
    one_page(tmp_path / "set", "x", np.arange(N))
    assert read_all(tmp_path / "set")[0]["inputs"].ravel().tolist() == list(range(N))


@pytest.mark.parametrize("claimed", [N - 1, N + 1, 8191])
def test_pages_have_as_many_values_as_the_footer_says(tmp_path: Path, claimed: int) -> None:
    at = one_page(tmp_path / "set", "x", np.arange(N))
    error = refusal(claiming(tmp_path / "set", at, N, claimed, 2))
    assert type(error) is InvalidDataset
    assert error.violations[0].location == "calibration.x"


def test_a_page_says_how_long_it_is(tmp_path: Path) -> None:
    at = one_page(tmp_path / "set", "x", np.zeros(2**14, np.int64))
    header, _ = read_struct((tmp_path / "set").read_bytes()[at : at + 4096])
    # Once as it is inflated, once as it is stored: the second is to lead beyond the column.
    assert header[2] == header[3] > 2**17
    error = refusal(claiming(tmp_path / "set", at, header[3], 1_000_000, 3, occurrence=1))
    assert type(error) is InvalidDataset
    assert "as the footer" in error.message


def test_a_page_that_inflates_to_gigabytes_is_refused(tmp_path: Path) -> None:
    big = pa.array([b"\0" * (MAX_PAGE_BYTES // 8)] * 9, pa.binary())
    pictures = pa.StructArray.from_arrays([big], ["bytes"])
    path = write_parquet(
        tmp_path / "set",
        {"image": pictures, "label": np.arange(9) % 2},
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
        data_page_size=2**30,
        write_batch_size=1024,
    )
    del big, pictures
    assert path.stat().st_size < 100_000
    before = pa.total_allocated_bytes()
    error = refusal(path, reading=AS_IT_IS)
    assert type(error) is TooLarge
    assert error.violations[0].location == "calibration.image"
    assert "row_group_size=100" in error.message
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_a_mutated_table_of_inputs_is_read_or_refused(tmp_path: Path) -> None:
    path = write_parquet(
        tmp_path / "set",
        {
            "ids": lists(np.full(40, 4)),
            "label": pa.array(["cat", "dog"] * 20),
            "uncertainty_own": np.linspace(0, 1, 40),
        },
        row_group_size=16,
    )
    whole = path.read_bytes()
    for size in range(5, len(whole), 97):
        path.write_bytes(whole[:size])
        refusal(path)
    rng = np.random.default_rng(0)
    for _ in range(250):
        data = bytearray(whole)
        data[rng.integers(4, len(data))] = rng.integers(256)
        path.write_bytes(data)
        try:
            read_all(path)
        except InvalidInput as error:
            assert error.violations  # noqa: PT017 - either outcome is right, any other exception wrong


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x15",
        b"\x15\xff",
        b"\x15" + b"\xff" * 11,
        b"\x1c" * 100,
        b"\x18\xff\xff\xff\x7f",
        b"\x19\xf5\xff\xff\xff\xff\x7f",
        b"\x1b\x01\x55\x01\x01\x00",
        b"\x1f\x00",
    ],
)
def test_bytes_that_are_no_header(data: bytes) -> None:
    with pytest.raises(ThriftError):
        read_struct(data)


def test_integers_and_structs_of_a_header_are_read() -> None:
    # 1: 7, 2: -2, 5: {1: 300, 2: true}, 6: "ab", 7: [1, 2], 8: double, 40: 1
    data = bytes.fromhex("150e 1503 3c 15d804 11 00 18026162 1925 0204".replace(" ", ""))
    data += b"\x17" + b"\0" * 8 + b"\x05\x50\x02" + b"\x00" + b"rest"
    assert read_struct(data) == (
        {1: 7, 2: -2, 5: {1: 300, 2: 1}, 6: b"ab", 7: [1, 2], 8: 0, 40: 1},
        len(data) - 4,
    )
