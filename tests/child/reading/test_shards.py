"""Shards: pieces of a set, and .npz files that are the same bytes at any time."""

import time

import numpy as np
import pytest
from dataset_files import LIMITS, npy_bytes, write_members
from hypothesis import given
from hypothesis import strategies as st

from service.child.reading.open_set import open_dataset
from service.runner.messages.dataset import (
    AIMED_BYTES,
    MOST_ROWS,
    ArrayInfo,
    Batch,
    DatasetInfo,
    shard_rows,
)
from service.storage.shards import npz_content, read_shard, shard_buffers


def info_of(*row_bytes: int) -> DatasetInfo:
    arrays = {f"x{i}": ArrayInfo("uint8", (9, size)) for i, size in enumerate(row_bytes)}
    return DatasetInfo("inputs", "npz", arrays, 9, None, (), labelled=True)


@given(row_bytes=st.lists(st.integers(0, 2**40), min_size=1, max_size=3))
def test_a_shard_has_a_power_of_two_of_rows_and_no_more_bytes_than_aimed_at(row_bytes):
    found = shard_rows(info_of(*row_bytes))
    assert found & (found - 1) == 0
    assert 1 <= found <= MOST_ROWS
    size = sum(row_bytes)
    assert found * size <= AIMED_BYTES or found == 1
    # It is the largest such number.
    assert 2 * found > MOST_ROWS or 2 * found * size > AIMED_BYTES


def test_the_bytes_are_the_same_at_any_time(monkeypatch):
    arrays = {"b": np.zeros(3), "a": np.ones((2, 2), np.float16)}
    first = npz_content(arrays)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 1e8)
    assert npz_content(arrays) == first
    assert npz_content({"b": np.zeros(3), "a": np.ones((2, 2), np.float16)}) == first
    assert npz_content({"b": np.zeros(3), "a": np.zeros((2, 2), np.float16)}) != first


def test_rows_are_written_in_c_order_as_readers_want_them():
    array = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    assert npz_content({"a": array}) == npz_content({"a": np.ascontiguousarray(array)})


SETS = {
    "two inputs": {
        "file": np.random.default_rng(0).normal(size=(11, 2, 3)).astype(np.float16),
        "block/été:0": np.arange(11, dtype=np.uint8),
        "labels": np.arange(11) % 3,
    },
    "supplied": {
        "logits": np.random.default_rng(1).normal(size=(11, 4)),
        "uncertainty_own": np.linspace(0, 1, 11),
        "labels": np.arange(11, dtype=np.uint16) % 4,
    },
    "unlabelled": {"inputs": np.arange(22, dtype=">i4").reshape(11, 2)},
}


@pytest.mark.parametrize("rows", [1, 4, 16])
@pytest.mark.parametrize("release", ["this", "before"])
@pytest.mark.parametrize("arrays", SETS.values(), ids=SETS.keys())
def test_the_shards_together_are_the_set(tmp_path, arrays, rows, release):
    # numpy itself can write no array that is called "file".
    members = {f"{name}.npy": npy_bytes(array) for name, array in arrays.items()}
    path = write_members(tmp_path / "set.npz", members)
    parts = []
    with opened(path) as dataset:
        assert dataset.info.labelled is ("labels" in arrays)
        whole = next(iter(dataset.batches(11)))
        for batch in dataset.batches(rows):
            part = tmp_path / f"{batch.start}"
            write = written if release == "this" else written_before
            part.write_bytes(write(batch, labelled=dataset.info.labelled))
            parts.append(read_shard(part))
    for name, array in whole.arrays.items():
        found = [part.arrays[name] for part in parts]
        assert {part.dtype for part in found} == {array.dtype}
        assert all(part.flags.aligned for part in found)
        np.testing.assert_array_equal(np.concatenate(found), array)
    for name, values in whole.supplied.items():
        np.testing.assert_array_equal(np.concatenate([p.supplied[name] for p in parts]), values)
    np.testing.assert_array_equal(np.concatenate([part.labels for part in parts]), whole.labels)


def written(batch: Batch, *, labelled: bool) -> bytes:
    return b"".join(shard_buffers(batch, labelled=labelled))


def written_before(batch: Batch, *, labelled: bool) -> bytes:
    """Write a shard as releases did that stored .npz files."""
    supplied = {f"uncertainty_{name}": values for name, values in batch.supplied.items()}
    labels = {"labels": batch.labels} if labelled else {}
    return npz_content({**batch.arrays, **supplied, **labels})


def opened(path):
    return open_dataset(path, location="calibration", limits=LIMITS, labels_required=False)
