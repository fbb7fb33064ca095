"""Shards: pieces of a set, and .npz files that are the same bytes at any time."""

import time

import numpy as np
import pytest
from dataset_files import LIMITS, write_members
from running_service import npy

from howsure.npz import npz_bytes
from service.child.reading.open_set import open_dataset
from service.runner.messages.dataset import (
    Batch,
)
from service.storage.shards import read_shard, shard_buffers


def test_the_bytes_are_the_same_at_any_time_and_in_any_order_of_the_array(monkeypatch):
    array, now = np.arange(6.0).reshape(3, 2), time.time()
    first = npz_bytes({"a": array})
    monkeypatch.setattr(time, "time", lambda: now + 1e8)
    assert npz_bytes({"a": np.asfortranarray(array)}) == first


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


def written(batch: Batch, *, labelled: bool) -> bytes:
    return b"".join(shard_buffers(batch, labelled=labelled))


@pytest.mark.parametrize("rows", [1, 4, 16])
@pytest.mark.parametrize("arrays", SETS.values(), ids=SETS.keys())
def test_the_shards_together_are_the_set(tmp_path, arrays, rows):
    # numpy itself can write no array that is called "file".
    members = {f"{name}.npy": npy(array) for name, array in arrays.items()}
    path = write_members(tmp_path / "set.npz", members)
    options = {"location": "calibration", "limits": LIMITS, "labels_required": False}
    parts = []
    with open_dataset(path, **options) as dataset:
        assert dataset.info.labelled is ("labels" in arrays)
        whole = next(iter(dataset.batches(11)))
        for batch in dataset.batches(rows):
            part = tmp_path / f"{batch.start}"
            part.write_bytes(written(batch, labelled=dataset.info.labelled))
            parts.append(read_shard(part))
    for name, array in whole.arrays.items():
        pieces = [part.arrays[name] for part in parts]
        assert {piece.dtype for piece in pieces} == {array.dtype}
        assert all(piece.flags.aligned for piece in pieces)
        np.testing.assert_array_equal(np.concatenate(pieces), array)
    for name, values in whole.supplied.items():
        np.testing.assert_array_equal(np.concatenate([p.supplied[name] for p in parts]), values)
    np.testing.assert_array_equal(np.concatenate([part.labels for part in parts]), whole.labels)
