"""Records are the same to the last bit however a set is cut into shards."""

import uuid

import numpy as np
import pytest
from job_workspaces import packed, shard_task

from howsure.statistics.records.build import build_records
from howsure.statistics.records.order import tie_keys
from service.child.reading.open_set import open_dataset
from service.jobs.recording import RecordingContext, ShardTask, record_shard
from service.runner.messages.limits import DatasetLimits
from service.runner.model_files import OpenModels
from service.storage.artifact_keys import JobFiles, recorded
from service.storage.artifact_rows import NewArtifact
from service.storage.artifact_store import open_artifact_store
from service.storage.shards import join_records, shard_buffers, store_records, usable

N_SAMPLES = 1300
SEED, TOP_K = 7, (1, 2)
LABELS = np.random.default_rng(5).integers(0, 10, N_SAMPLES)
OWN = np.random.default_rng(6).random(N_SAMPLES)
CUTS = (300, 4096)
FILES = JobFiles.of(uuid.uuid4())
LIMITS = DatasetLimits()


@pytest.fixture
def store(tmp_path):
    return open_artifact_store(str(tmp_path / "artifacts"))


def cut(store, path, size) -> list[ShardTask]:
    """Store a set as shards of so many rows."""
    tasks = []
    with open_dataset(path, location="calibration", limits=LIMITS) as dataset:
        for position, batch in enumerate(dataset.batches(size)):
            key = FILES.shard("calibration", batch.start)
            put = store.put_buffers(key, shard_buffers(batch, labelled=True))
            shard = NewArtifact("calibration", position, "c.npz", key, put.sha256, put.size)
            n_rows = len(batch.labels)
            tasks.append(shard_task(FILES, shard, batch.start, n_rows, top_k=TOP_K, seed=SEED))
    return tasks


def recorded_whole(store, tasks):
    tools = RecordingContext(store, None, OpenModels(store), LIMITS)
    made = [record_shard(tools, task, check=lambda: None) for task in reversed(tasks)]
    parts = [one.artifact("records", i) for i, one in enumerate(reversed(made))]
    return join_records(store, parts, n_samples=N_SAMPLES)


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_of_outputs(store, tmp_path, kind) -> None:
    values = np.random.default_rng(1).dirichlet(np.ones(10), N_SAMPLES)
    values = np.log(values).astype(np.float32) if kind == "logits" else values
    path = tmp_path / "set.npz"
    path.write_bytes(packed(**{kind: values, "labels": LABELS, "uncertainty_own": OWN}))
    scores = values.astype(np.float64) if kind == "logits" else np.log(values)
    options = {"tie_keys": tie_keys(values, SEED), "top_k": TOP_K, "logits": kind == "logits"}
    expected = build_records(scores, LABELS, **options).with_supplied({"own": OWN})
    for size in CUTS:
        arrays = recorded_whole(store, cut(store, path, size)).to_arrays()
        for name, array in expected.to_arrays().items():
            np.testing.assert_array_equal(arrays.pop(name), array, name, strict=True)
        assert not arrays


def test_the_same_records_are_one_file_and_damaged_or_unknown_ones_are_not_used(store) -> None:
    scores = np.random.default_rng(2).normal(size=(30, 4))
    keys = tie_keys(scores, 0)
    records = build_records(scores, np.arange(30) % 4, tie_keys=keys, top_k=(1,), logits=True)
    first, second = (store_records(store, FILES, "records", 4096, records) for _ in range(2))
    assert first == second
    assert recorded(store.keys(FILES.prefix)) == {("records", 4096): (first.key, first.sha256)}
    assert usable(store, 4096, first.key, first.sha256) == first
    good = store.get_bytes(first.key, first.sha256)
    one_bit = good[:500] + bytes([good[500] ^ 1]) + good[501:]
    for content in (b"", b"PK", good[:-100], one_bit):
        store.put_bytes(first.key, content)
        assert usable(store, 4096, first.key, first.sha256) is None
    store.delete([first.key])
    assert usable(store, 4096, first.key, first.sha256) is None
    # Of a release that kept others: the digest is right, but the arrays are unknown.
    content = packed(tie_key=np.zeros(3, np.uint32), of_old=np.zeros(3))
    key = FILES.records("records", 0, "0" * 64)
    put = store.put_bytes(key, content)
    assert usable(store, 0, key, put.sha256) is None
